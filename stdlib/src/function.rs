//! What a function *is*: one [`FunctionDef`] says its names, its typing, how it treats NULL, how it is evaluated, and
//! its documentation. The catalogue (`functions/`) is tables of these; nothing else about a function is written anywhere.

use std::sync::Arc;

use arrow::array::ArrayRef;
use ssql_ir::{AggCall, DataType, Field};

use crate::aggregate::Aggregate;
use crate::call::Call;
use crate::error::{EvalError, ResolveError};
use crate::resolve::{ArgType, TypeCall, Typed};

/// What kind of call a name makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// One value per row from that row's values.
    Scalar,
    /// As scalar, and takes lambdas.
    HigherOrder,
    /// One value per group; usable OVER a window too.
    Aggregate,
    /// Any number of rows per row.
    Generator,
    /// Ranking and offset functions, OVER a window only.
    Window,
}

/// A class of types that a parameter takes. What is not in the class is cast to it where Spark's ANSI rules cast
/// implicitly (see [`crate::coercion::implicit_cast`]); else the call is refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Param {
    /// BOOLEAN.
    Boolean,
    /// TINYINT.
    TinyInt,
    /// SMALLINT.
    SmallInt,
    /// INT.
    Int,
    /// BIGINT.
    BigInt,
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// Any DECIMAL; integers become the decimal that holds them.
    Decimal,
    /// STRING.
    String,
    /// BINARY.
    Binary,
    /// DATE.
    Date,
    /// TIMESTAMP.
    Timestamp,
    /// TIMESTAMP_NTZ.
    TimestampNtz,
    /// TIMESTAMP or TIMESTAMP_NTZ.
    AnyTimestamp,
    /// INTERVAL DAY TO SECOND.
    DayTime,
    /// INTERVAL YEAR TO MONTH.
    YearMonth,
    /// Any integer type, kept.
    Integral,
    /// Any numeric type, kept.
    Numeric,
    /// Any array, kept.
    Array,
    /// Any map, kept.
    Map,
    /// Any struct, kept.
    Struct,
    /// An array whose elements are of that class.
    ArrayOf(&'static Param),
    /// Any type, kept.
    Any,
    /// Any type that has an order (no maps inside), kept.
    Ordered,
    /// The first of these that takes the type as it is, else the first that it can be cast to.
    OneOf(&'static [Param]),
    /// That class without implicit casts but of an untyped NULL (Spark's `ExpectsInputTypes`).
    Exactly(&'static Param),
    /// A lambda.
    Lambda,
}

/// STRING or BINARY, the commonest alternative.
pub const STRING_OR_BINARY: Param = Param::OneOf(&[Param::String, Param::Binary]);

/// STRING, and nothing that would have to be made one.
pub const TEXT: Param = Param::Exactly(&Param::String);

/// The type of a result.
#[derive(Clone, Copy)]
pub enum Ret {
    /// BOOLEAN.
    Boolean,
    /// TINYINT.
    TinyInt,
    /// SMALLINT.
    SmallInt,
    /// INT.
    Int,
    /// BIGINT.
    BigInt,
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// STRING.
    String,
    /// BINARY.
    Binary,
    /// DATE.
    Date,
    /// TIMESTAMP.
    Timestamp,
    /// TIMESTAMP_NTZ.
    TimestampNtz,
    /// INTERVAL DAY TO SECOND.
    DayTime,
    /// INTERVAL YEAR TO MONTH.
    YearMonth,
    /// The type of that argument (after its cast).
    SameAs(usize),
    /// The element type of that argument, an array.
    ElementOf(usize),
    /// ARRAY of this, elements may be NULL.
    ArrayOf(&'static Ret),
    /// Computed from the argument types (after their casts).
    With(fn(&[DataType]) -> DataType),
}

/// How a call is typed.
#[derive(Clone, Copy)]
pub enum Signature {
    /// `params` in order; the last `optional` may be left out, and with `variadic` the last one repeats
    /// (any number of times, zero included if it is optional).
    Fixed {
        /// Parameters in order.
        params: &'static [Param],
        /// How many of the last may be left out.
        optional: usize,
        /// Whether the last repeats.
        variadic: bool,
        /// Result.
        result: Ret,
    },
    /// By code.
    Custom(fn(&TypeCall<'_>) -> Result<Typed, ResolveError>),
}

/// Where NULL comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullRule {
    /// NULL exactly when an argument is. The evaluation is not asked about such rows by [`Call`]'s builders.
    Strict,
    /// NULL when an argument is, and for some values too (`try_` functions, a search that finds nothing).
    StrictNullable,
    /// Never NULL; the evaluation sees NULL arguments.
    Never,
    /// May be NULL; the evaluation sees NULL arguments.
    Any,
}

/// One scalar evaluation: whole arguments in, an array of `call.rows` out.
pub type EvalFn = fn(&Call<'_>) -> Result<ArrayRef, EvalError>;
/// What a generator makes: the input row of each output row, and the generated columns.
pub type Generated = (Vec<u32>, Vec<ArrayRef>);

/// How a function is evaluated.
#[derive(Clone, Copy)]
pub enum Eval {
    /// Scalar and higher-order functions.
    Rows(EvalFn),
    /// Generators: the columns they make (from the cast argument types and the arguments as given), and the rows.
    Generate {
        /// Generated columns.
        fields: fn(&[DataType], &[ArgType]) -> Vec<Field>,
        /// Generated rows, without those that `outer` adds.
        rows: fn(&Call<'_>) -> Result<Generated, EvalError>,
    },
    /// Aggregates: makes the state handler of one bound call.
    Aggregate(fn(&AggCall) -> Result<Arc<dyn Aggregate>, EvalError>),
    /// By the engine's window operator.
    Window,
}

/// Types of a lambda's parameters (with whether they may be NULL), from the types of the other arguments.
pub type LambdaTyping =
    fn(args: &[Option<DataType>], position: usize, n_params: usize) -> Result<Vec<(DataType, bool)>, ResolveError>;

/// Documentation of a function, rendered into `spec/functions.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doc {
    /// One sentence.
    pub summary: &'static str,
    /// The call with its parameters, `substring(str, pos[, len])`.
    pub usage: &'static str,
    /// An expression whose result the tests know, or empty.
    pub example: &'static str,
}

/// One function. Written as a `const` table entry by [`scalar`] and its siblings.
#[derive(Clone, Copy)]
pub struct FunctionDef {
    /// Canonical lower-case name, the one that stands in the IR.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What kind of call it makes.
    pub kind: FunctionKind,
    /// How it is typed.
    pub signature: Signature,
    /// How it treats NULL.
    pub nulls: NullRule,
    /// Whether equal arguments give equal results (`rand()` and `current_timestamp()` do not; they are never folded).
    pub deterministic: bool,
    /// Made by the planner only; not found by name in SQL text (`get_field`, `window_start`).
    pub internal: bool,
    /// How it is evaluated.
    pub eval: Eval,
    /// Higher-order functions: how their lambdas are typed.
    pub lambda: Option<LambdaTyping>,
    /// Documentation.
    pub doc: Doc,
}

const fn def(name: &'static str, kind: FunctionKind, params: &'static [Param], result: Ret, eval: Eval) -> FunctionDef {
    FunctionDef {
        name,
        aliases: &[],
        kind,
        signature: Signature::Fixed { params, optional: 0, variadic: false, result },
        nulls: NullRule::Strict,
        deterministic: true,
        internal: false,
        eval,
        lambda: None,
        doc: Doc { summary: "", usage: "", example: "" },
    }
}

/// A scalar function, strict in NULL.
pub const fn scalar(name: &'static str, params: &'static [Param], result: Ret, eval: EvalFn) -> FunctionDef {
    def(name, FunctionKind::Scalar, params, result, Eval::Rows(eval))
}

/// A scalar function typed by code, strict in NULL.
pub const fn scalar_with(
    name: &'static str,
    typing: fn(&TypeCall<'_>) -> Result<Typed, ResolveError>,
    eval: EvalFn,
) -> FunctionDef {
    let mut d = def(name, FunctionKind::Scalar, &[], Ret::Boolean, Eval::Rows(eval));
    d.signature = Signature::Custom(typing);
    d
}

/// A function that takes lambdas. `typing` sees the lambda bodies' types as the types of their arguments.
pub const fn higher_order(
    name: &'static str,
    lambda: LambdaTyping,
    typing: fn(&TypeCall<'_>) -> Result<Typed, ResolveError>,
    eval: EvalFn,
) -> FunctionDef {
    let mut d = def(name, FunctionKind::HigherOrder, &[], Ret::Boolean, Eval::Rows(eval));
    d.signature = Signature::Custom(typing);
    d.lambda = Some(lambda);
    d.nulls = NullRule::Any;
    d
}

/// An aggregate, NULL over no rows.
pub const fn aggregate(
    name: &'static str,
    params: &'static [Param],
    result: Ret,
    make: fn(&AggCall) -> Result<Arc<dyn Aggregate>, EvalError>,
) -> FunctionDef {
    let mut d = def(name, FunctionKind::Aggregate, params, result, Eval::Aggregate(make));
    d.nulls = NullRule::Any;
    d
}

/// An aggregate typed by code, NULL over no rows.
pub const fn aggregate_with(
    name: &'static str,
    typing: fn(&TypeCall<'_>) -> Result<Typed, ResolveError>,
    make: fn(&AggCall) -> Result<Arc<dyn Aggregate>, EvalError>,
) -> FunctionDef {
    let mut d = aggregate(name, &[], Ret::Boolean, make);
    d.signature = Signature::Custom(typing);
    d
}

/// A generator typed by code (the `data_type` of its [`Typed`] is not used).
pub const fn generator(
    name: &'static str,
    typing: fn(&TypeCall<'_>) -> Result<Typed, ResolveError>,
    fields: fn(&[DataType], &[ArgType]) -> Vec<Field>,
    rows: fn(&Call<'_>) -> Result<Generated, EvalError>,
) -> FunctionDef {
    let mut d = def(name, FunctionKind::Generator, &[], Ret::Boolean, Eval::Generate { fields, rows });
    d.signature = Signature::Custom(typing);
    d.nulls = NullRule::Any;
    d
}

/// A ranking or offset function, typed by code.
pub const fn window(name: &'static str, typing: fn(&TypeCall<'_>) -> Result<Typed, ResolveError>) -> FunctionDef {
    let mut d = def(name, FunctionKind::Window, &[], Ret::Boolean, Eval::Window);
    d.signature = Signature::Custom(typing);
    d.nulls = NullRule::Never;
    d
}

impl FunctionDef {
    /// With these further names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> FunctionDef {
        self.aliases = aliases;
        self
    }

    /// With the last `n` parameters optional.
    pub const fn optional(mut self, n: usize) -> FunctionDef {
        if let Signature::Fixed { params, variadic, result, .. } = self.signature {
            self.signature = Signature::Fixed { params, optional: n, variadic, result };
        }
        self
    }

    /// With the last parameter repeated.
    pub const fn variadic(mut self) -> FunctionDef {
        if let Signature::Fixed { params, optional, result, .. } = self.signature {
            self.signature = Signature::Fixed { params, optional, variadic: true, result };
        }
        self
    }

    /// With that NULL rule.
    pub const fn nulls(mut self, rule: NullRule) -> FunctionDef {
        self.nulls = rule;
        self
    }

    /// Not a function of its arguments alone.
    pub const fn volatile(mut self) -> FunctionDef {
        self.deterministic = false;
        self
    }

    /// For the planner only.
    pub const fn internal(mut self) -> FunctionDef {
        self.internal = true;
        self
    }

    /// With documentation: one sentence, the call with its parameters, an example.
    pub const fn doc(mut self, summary: &'static str, usage: &'static str, example: &'static str) -> FunctionDef {
        self.doc = Doc { summary, usage, example };
        self
    }
}

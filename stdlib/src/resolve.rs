//! Typing of calls: from a name and argument types to the overload, the casts of its arguments and the result type.

use ssql_ir::{DataType, Field, Literal, Symbol};

use crate::coercion::{common_type, common_type_no_strings, common_type_of, implicit_cast, param_name};
use crate::error::ResolveError;
use crate::function::{Eval, FunctionDef, FunctionKind, NullRule, Param, Ret, Signature};
use crate::functions::{catalogue, lookup};

/// What the binder knows of an argument.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgType {
    /// Its type.
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Its value, where it is a constant.
    pub literal: Option<Literal>,
}

impl ArgType {
    /// An argument that is no constant.
    pub fn new(data_type: DataType, nullable: bool) -> ArgType {
        ArgType { data_type, nullable, literal: None }
    }

    /// A constant argument.
    pub fn constant(data_type: DataType, literal: Literal) -> ArgType {
        ArgType { data_type, nullable: literal == Literal::Null, literal: Some(literal) }
    }
}

/// A resolved call.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Canonical name, for the IR.
    pub function: Symbol,
    /// What each argument is to be cast to.
    pub arg_types: Vec<DataType>,
    /// Type of the result.
    pub data_type: DataType,
    /// Whether the result may be NULL.
    pub nullable: bool,
}

/// What a typing rule decides.
#[derive(Debug, Clone, PartialEq)]
pub struct Typed {
    /// What each argument is to be cast to.
    pub arg_types: Vec<DataType>,
    /// Type of the result.
    pub data_type: DataType,
    /// Whether the result may be NULL; `None`: as the function's [`NullRule`] says.
    pub nullable: Option<bool>,
}

impl Typed {
    /// Result and casts, nullability by the function's rule.
    pub fn new(arg_types: Vec<DataType>, data_type: DataType) -> Typed {
        Typed { arg_types, data_type, nullable: None }
    }

    /// With that nullability.
    pub fn nullable(mut self, nullable: bool) -> Typed {
        self.nullable = Some(nullable);
        self
    }
}

/// A call that is being typed, as typing rules see it.
#[derive(Debug, Clone, Copy)]
pub struct TypeCall<'a> {
    /// Canonical name.
    pub name: &'a str,
    /// Arguments; a lambda has its body's type.
    pub args: &'a [ArgType],
}

impl TypeCall<'_> {
    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.args.len()
    }

    /// Whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// Type of an argument as given. Check the number of arguments first.
    pub fn ty(&self, i: usize) -> &DataType {
        &self.args[i].data_type
    }

    /// The argument's constant, if it is one and not NULL.
    pub fn literal(&self, i: usize) -> Option<&Literal> {
        self.args.get(i)?.literal.as_ref().filter(|l| **l != Literal::Null)
    }

    /// Refuses the call unless it has `min..=max` arguments.
    pub fn count(&self, min: usize, max: usize) -> Result<(), ResolveError> {
        if (min..=max).contains(&self.args.len()) {
            return Ok(());
        }
        let expected = if min == max {
            min.to_string()
        } else if max == usize::MAX {
            format!("at least {min}")
        } else {
            format!("{min} to {max}")
        };
        Err(ResolveError::new(
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            format!("`{}` requires {expected} parameters but the actual number is {}.", self.name, self.args.len()),
        ))
    }

    /// The type that argument `i` is cast to for that parameter.
    pub fn coerce(&self, i: usize, p: Param) -> Result<DataType, ResolveError> {
        implicit_cast(self.ty(i), &p).ok_or_else(|| self.mismatch(i, &param_name(&p)))
    }

    /// The error "parameter `i` requires ..., it has type ...".
    pub fn mismatch(&self, i: usize, required: &str) -> ResolveError {
        let place = match i {
            0 => "first".into(),
            1 => "second".into(),
            2 => "third".into(),
            n => format!("{}th", n + 1),
        };
        ResolveError::new(
            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            format!(
                "The {place} parameter of `{}` requires the {required} type, but it has the type {}.",
                self.name,
                self.ty(i)
            ),
        )
        .at_arg(i)
    }

    /// The error "the arguments should all have the same type".
    pub fn different_types(&self) -> ResolveError {
        let types: Vec<String> = self.args.iter().map(|a| a.data_type.to_string()).collect();
        ResolveError::new(
            "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
            format!("Input to `{}` should all be the same type, but it is ({}).", self.name, types.join(", ")),
        )
    }

    /// The common type of arguments `from..`, strings becoming numbers beside numbers.
    pub fn common(&self, from: usize) -> Result<DataType, ResolveError> {
        common_type_of(self.args[from..].iter().map(|a| &a.data_type)).ok_or_else(|| self.different_types())
    }

    /// The common type of arguments `from..`, strings staying strings.
    pub fn common_no_strings(&self, from: usize) -> Result<DataType, ResolveError> {
        let mut types = self.args[from..].iter().map(|a| &a.data_type);
        let first = types.next().cloned().unwrap_or(DataType::Null);
        types.try_fold(first, |wide, t| common_type_no_strings(&wide, t)).ok_or_else(|| self.different_types())
    }

    /// The common type of two arguments.
    pub fn common_of(&self, i: usize, j: usize) -> Result<DataType, ResolveError> {
        common_type(self.ty(i), self.ty(j)).ok_or_else(|| self.different_types())
    }

    /// Whether any argument may be NULL.
    pub fn any_nullable(&self) -> bool {
        self.args.iter().any(|a| a.nullable)
    }

    /// Types all arguments by `params` as [`Signature::Fixed`] does.
    pub fn fixed(&self, params: &[Param], optional: usize, variadic: bool) -> Result<Vec<DataType>, ResolveError> {
        self.count(params.len() - optional, if variadic { usize::MAX } else { params.len() })?;
        (0..self.args.len())
            .map(|i| self.coerce(i, *params.get(i).or(params.last()).expect("arguments imply a parameter")))
            .collect()
    }
}

fn result_type(ret: &Ret, args: &[DataType]) -> DataType {
    match ret {
        Ret::Boolean => DataType::Boolean,
        Ret::TinyInt => DataType::Int8,
        Ret::SmallInt => DataType::Int16,
        Ret::Int => DataType::Int32,
        Ret::BigInt => DataType::Int64,
        Ret::Float => DataType::Float32,
        Ret::Double => DataType::Float64,
        Ret::String => DataType::String,
        Ret::Binary => DataType::Binary,
        Ret::Date => DataType::Date,
        Ret::Timestamp => DataType::Timestamp,
        Ret::TimestampNtz => DataType::TimestampNtz,
        Ret::DayTime => DataType::DAY_TO_SECOND,
        Ret::YearMonth => DataType::YEAR_TO_MONTH,
        Ret::SameAs(i) => args.get(*i).cloned().unwrap_or(DataType::Null),
        Ret::ElementOf(i) => match args.get(*i) {
            Some(DataType::Array(e)) => e.data_type.clone(),
            _ => DataType::Null,
        },
        Ret::ArrayOf(r) => DataType::array(result_type(r, args)),
        Ret::With(f) => f(args),
    }
}

fn resolve(def: &'static FunctionDef, args: &[ArgType]) -> Result<Resolved, ResolveError> {
    let call = TypeCall { name: def.name, args };
    let typed = match &def.signature {
        Signature::Fixed { params, optional, variadic, result } => {
            let arg_types = call.fixed(params, *optional, *variadic)?;
            let data_type = result_type(result, &arg_types);
            Typed::new(arg_types, data_type)
        }
        Signature::Custom(f) => f(&call)?,
    };
    let nullable = typed.nullable.unwrap_or(match def.nulls {
        NullRule::Strict => call.any_nullable(),
        NullRule::Never => false,
        NullRule::StrictNullable | NullRule::Any => true,
    });
    Ok(Resolved { function: Symbol::from(def.name), arg_types: typed.arg_types, data_type: typed.data_type, nullable })
}

fn find(name: &str, fits: impl Fn(FunctionKind) -> bool) -> Result<&'static FunctionDef, ResolveError> {
    match lookup(name) {
        Some(def) if fits(def.kind) => Ok(def),
        found => {
            let error = ResolveError::new("UNRESOLVED_ROUTINE", format!("Cannot resolve routine `{name}`."));
            Err(match found {
                Some(def) => error.with_help(match def.kind {
                    FunctionKind::Aggregate => "it is an aggregate function",
                    FunctionKind::Generator => "it is a generator: use it in SELECT or LATERAL VIEW",
                    FunctionKind::Window => "it is a window function: it needs an OVER clause",
                    FunctionKind::Scalar | FunctionKind::HigherOrder => "it is a scalar function",
                }),
                None => error,
            })
        }
    }
}

/// The kind of the function of that name (canonical or alias, any case).
pub fn function_kind(name: &str) -> Option<FunctionKind> {
    lookup(name).map(|d| d.kind)
}

/// Names and aliases of all functions that SQL text can call, operators included; in catalogue order.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    catalogue().filter(|d| !d.internal).flat_map(|d| std::iter::once(d.name).chain(d.aliases.iter().copied()))
}

/// Types a call of a scalar function, a higher-order function or an operator.
pub fn resolve_scalar(name: &str, args: &[ArgType]) -> Result<Resolved, ResolveError> {
    resolve(find(name, |k| matches!(k, FunctionKind::Scalar | FunctionKind::HigherOrder))?, args)
}

/// Types a call of an aggregate.
pub fn resolve_aggregate(name: &str, args: &[ArgType], distinct: bool) -> Result<Resolved, ResolveError> {
    let def = find(name, |k| k == FunctionKind::Aggregate)?;
    if distinct && args.is_empty() {
        return Err(ResolveError::new(
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            format!("`{name}(DISTINCT)` needs a parameter."),
        ));
    }
    resolve(def, args)
}

/// Types a call of a ranking or offset function.
pub fn resolve_window(name: &str, args: &[ArgType]) -> Result<Resolved, ResolveError> {
    resolve(find(name, |k| k == FunctionKind::Window)?, args)
}

/// Types a call of a generator: casts of its arguments, and the columns it makes.
pub fn resolve_generator(name: &str, args: &[ArgType]) -> Result<(Resolved, Vec<Field>), ResolveError> {
    let def = find(name, |k| k == FunctionKind::Generator)?;
    let resolved = resolve(def, args)?;
    let Eval::Generate { fields, .. } = def.eval else {
        return Err(ResolveError::new("INTERNAL_ERROR", format!("`{name}` has no generator evaluation.")));
    };
    let fields = fields(&resolved.arg_types, args);
    Ok((resolved, fields))
}

/// Types of the parameters of the lambda at `position` of a higher-order function's call, and whether they may be
/// NULL. `args` has `None` where lambdas stand.
pub fn lambda_param_types(
    name: &str,
    args: &[Option<DataType>],
    position: usize,
    n_params: usize,
) -> Result<Vec<(DataType, bool)>, ResolveError> {
    let def = find(name, |k| k == FunctionKind::HigherOrder)?;
    match def.lambda {
        Some(f) => f(args, position, n_params),
        None => Err(ResolveError::new("INTERNAL_ERROR", format!("`{name}` has no lambda typing."))),
    }
}

/// Whether equal arguments give equal results. False for unknown names: what is not known is not folded.
pub fn is_deterministic(name: &str) -> bool {
    lookup(name).is_some_and(|d| d.deterministic)
}

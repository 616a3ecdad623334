//! What generated code can compute: expressions reduced to machine types and to the few forms that are emitted.
//!
//! [`crate::lower`] makes these from IR expressions and refuses what is not here, so that emission is total.

use cranelift_codegen::ir::{Type, types};
use ssql_abi::Status;
use ssql_ir::DataType;

/// The machine type of a value in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ty {
    /// 0 or 1; 0 where the value is NULL, so that "is true" needs no look at the NULL flag.
    Bool,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl Ty {
    /// The machine type of values of this SQL type, if they fit a register.
    pub(crate) fn of(t: &DataType) -> Option<Ty> {
        Some(match t {
            DataType::Boolean => Ty::Bool,
            DataType::Int8 => Ty::I8,
            DataType::Int16 => Ty::I16,
            DataType::Int32 | DataType::Date | DataType::YearMonthInterval(..) => Ty::I32,
            DataType::Int64 | DataType::Timestamp | DataType::TimestampNtz | DataType::DayTimeInterval(..) => Ty::I64,
            DataType::Float32 => Ty::F32,
            DataType::Float64 => Ty::F64,
            _ => return None,
        })
    }

    pub(crate) fn clif(self) -> Type {
        match self {
            Ty::Bool | Ty::I8 => types::I8,
            Ty::I16 => types::I16,
            Ty::I32 => types::I32,
            Ty::I64 => types::I64,
            Ty::F32 => types::F32,
            Ty::F64 => types::F64,
        }
    }

    /// Bytes of a value in an output column.
    pub(crate) fn width(self) -> usize {
        self.clif().bytes() as usize
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }

    /// Smallest and largest value of an integer type.
    pub(crate) fn int_range(self) -> (i64, i64) {
        match self {
            Ty::Bool => (0, 1),
            Ty::I8 => (i8::MIN.into(), i8::MAX.into()),
            Ty::I16 => (i16::MIN.into(), i16::MAX.into()),
            Ty::I32 => (i32::MIN.into(), i32::MAX.into()),
            Ty::I64 | Ty::F32 | Ty::F64 => (i64::MIN, i64::MAX),
        }
    }

    /// What an overflowing `+`, `-` or `*` of this type reports.
    pub(crate) fn overflow(self) -> Status {
        match self {
            Ty::I8 | Ty::I16 => Status::BinaryArithmeticOverflow,
            _ => Status::ArithmeticOverflow,
        }
    }
}

/// Number of a fallible expression in the kernel's table of origins.
pub(crate) type Site = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// `/` of floats: division by zero is an error.
    Divide,
    /// `div` of BIGINTs.
    IntDivide,
    /// `%` of integers; the sign is the dividend's.
    Remainder,
    BitAnd,
    BitOr,
    BitXor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnaryOp {
    Negative,
    Abs,
    BitNot,
    Not,
    /// NULL gives false.
    IsNan,
}

/// What a cast does to the machine value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CastKind {
    /// Between integers, floats and BOOLEAN: range-checked, truncated toward zero.
    Number,
    /// Microseconds to whole seconds (toward the past), range-checked.
    MicrosToSeconds,
    /// Microseconds to seconds with a fraction.
    MicrosToFloat,
    /// Seconds to microseconds, saturating.
    SecondsToMicros,
    /// Microseconds to the day.
    MicrosToDays,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub op: NodeOp,
    pub ty: Ty,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeOp {
    Column(u32),
    /// The value's bits.
    Const(u64),
    Null,
    Unary(UnaryOp, Box<Node>, Site),
    Binary(BinaryOp, Box<Node>, Box<Node>, Site),
    Compare(CompareOp, Box<Node>, Box<Node>),
    NullSafeEq(Box<Node>, Box<Node>),
    CompareText(CompareOp, Text, Text),
    NullSafeEqText(Text, Text),
    StartsWith(Text, String),
    IsNull(Box<Node>),
    /// Whether a column of any type at all is NULL.
    IsNullColumn(u32),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Case(Vec<(Node, Node)>, Option<Box<Node>>),
    Coalesce(Vec<Node>),
    Cast {
        kind: CastKind,
        input: Box<Node>,
        /// TRY_CAST: NULL where the value does not fit.
        tries: bool,
        site: Site,
    },
    /// Start of the window of that size and offset that a time in microseconds falls into.
    WindowStart {
        time: Box<Node>,
        size: i64,
        offset: i64,
        site: Site,
    },
}

/// A string operand.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Column(u32),
    Literal(String),
}

/// An expression this much work or less is computed whether it is needed or not: a branch that is guessed wrong costs as
/// much.
const EAGER_COST: u32 = 16;

impl Node {
    pub(crate) fn children(&self) -> Vec<&Node> {
        match &self.op {
            NodeOp::Column(_)
            | NodeOp::Const(_)
            | NodeOp::Null
            | NodeOp::CompareText(..)
            | NodeOp::NullSafeEqText(..)
            | NodeOp::StartsWith(..)
            | NodeOp::IsNullColumn(_) => vec![],
            NodeOp::Unary(_, a, _) | NodeOp::IsNull(a) => vec![a],
            NodeOp::Cast { input, .. } => vec![input],
            NodeOp::WindowStart { time, .. } => vec![time],
            NodeOp::Binary(_, a, b, _)
            | NodeOp::Compare(_, a, b)
            | NodeOp::NullSafeEq(a, b)
            | NodeOp::And(a, b)
            | NodeOp::Or(a, b) => vec![a, b],
            NodeOp::Case(branches, otherwise) => {
                branches.iter().flat_map(|(c, v)| [c, v]).chain(otherwise.as_deref()).collect()
            }
            NodeOp::Coalesce(args) => args.iter().collect(),
        }
    }

    /// A rough number of instructions.
    pub(crate) fn cost(&self) -> u32 {
        let own = match &self.op {
            NodeOp::Column(_) => 2,
            NodeOp::Const(_) | NodeOp::Null => 0,
            NodeOp::CompareText(..) | NodeOp::NullSafeEqText(..) | NodeOp::StartsWith(..) => 8,
            NodeOp::Binary(BinaryOp::Divide | BinaryOp::IntDivide | BinaryOp::Remainder, ..) => 15,
            NodeOp::WindowStart { .. } => 8,
            _ => 1,
        };
        own + self.children().iter().map(|c| c.cost()).sum::<u32>()
    }

    /// Whether computing it where it is not needed is cheap.
    pub(crate) fn eager(&self) -> bool {
        self.cost() <= EAGER_COST
    }

    /// Calls `visit` with each column it reads.
    pub(crate) fn columns(&self, visit: &mut impl FnMut(u32)) {
        let mut text = |t: &Text| {
            if let Text::Column(c) = t {
                visit(*c);
            }
        };
        match &self.op {
            NodeOp::Column(c) | NodeOp::IsNullColumn(c) => visit(*c),
            NodeOp::CompareText(_, a, b) | NodeOp::NullSafeEqText(a, b) => {
                text(a);
                text(b);
            }
            NodeOp::StartsWith(a, _) => text(a),
            _ => self.children().iter().for_each(|c| c.columns(visit)),
        }
    }
}

//! The ways a call can fail: while it is typed ([`ResolveError`]), while it runs ([`EvalError`]), while state is read
//! back ([`DecodeError`]).

use ssql_ir::{DataType, Origin};

/// A value made an expression fail while it ran: Spark's condition, a message, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("[{condition}] {message}")]
pub struct EvalError {
    /// Spark's error condition, such as `DIVIDE_BY_ZERO`.
    pub condition: &'static str,
    /// One sentence that names the value.
    pub message: String,
    /// How to mend it, one hint each.
    pub help: Vec<String>,
    /// The expression that failed.
    pub origin: Origin,
    /// Row of the batch that made it fail.
    pub row: Option<usize>,
}

impl EvalError {
    /// An error of that condition, without a place yet.
    pub fn new(condition: &'static str, message: impl Into<String>) -> EvalError {
        EvalError { condition, message: message.into(), help: vec![], origin: Origin::default(), row: None }
    }

    /// The same error with one more hint.
    pub fn with_help(mut self, help: impl Into<String>) -> EvalError {
        self.help.push(help.into());
        self
    }

    /// The same error at that row, unless it has one.
    pub fn at_row(mut self, row: usize) -> EvalError {
        self.row.get_or_insert(row);
        self
    }

    /// The same error at that expression, unless it has one.
    pub fn at(mut self, origin: Origin) -> EvalError {
        if self.origin.span.is_none() {
            self.origin = origin;
        }
        self
    }

    /// A fault of the compiler, not of the user: an expression that breaks the IR's own rules.
    pub fn internal(message: impl Into<String>) -> EvalError {
        EvalError::new("INTERNAL_ERROR", message)
    }

    /// Division by zero.
    pub fn divide_by_zero() -> EvalError {
        EvalError::new("DIVIDE_BY_ZERO", "Division by zero.")
            .with_help("use `try_divide` to get NULL where the divisor is 0")
    }

    /// Remainder by zero.
    pub fn remainder_by_zero() -> EvalError {
        EvalError::new("REMAINDER_BY_ZERO", "Remainder by zero.")
            .with_help("use `try_mod` to get NULL where the divisor is 0")
    }

    /// A result that does not fit its type; `instead` is the function that gives NULL, or empty. Binary operations on
    /// TINYINT and SMALLINT have a condition of their own, as in Spark.
    pub fn overflow(what: &str, data_type: &DataType, instead: &str) -> EvalError {
        let condition = match data_type {
            DataType::Int8 | DataType::Int16 if !instead.is_empty() => "BINARY_ARITHMETIC_OVERFLOW",
            DataType::DayTimeInterval(..) | DataType::YearMonthInterval(..) if instead.is_empty() => {
                "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION"
            }
            DataType::DayTimeInterval(..) | DataType::YearMonthInterval(..) => {
                "INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION"
            }
            _ => "ARITHMETIC_OVERFLOW",
        };
        let error = EvalError::new(condition, format!("{what} does not fit {data_type}."));
        if instead.is_empty() {
            error
        } else {
            error.with_help(format!("use `{instead}` to get NULL instead, or cast an operand to a wider type"))
        }
    }

    /// A DECIMAL that does not fit its precision.
    pub fn decimal_range(value: &str, precision: u8, scale: u8) -> EvalError {
        EvalError::new(
            "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
            format!("{value} does not fit DECIMAL({precision},{scale})."),
        )
        .with_help("use `TRY_CAST` or a `try_` function to get NULL instead")
    }

    /// Text that a cast cannot read.
    pub fn cast_invalid(text: &str, from: &DataType, to: &DataType) -> EvalError {
        EvalError::new(
            "CAST_INVALID_INPUT",
            format!("The value '{text}' of type {from} cannot be cast to {to}: it is malformed."),
        )
        .with_help("use `TRY_CAST` to get NULL instead")
    }

    /// A number that a cast cannot hold.
    pub fn cast_overflow(value: &str, from: &DataType, to: &DataType) -> EvalError {
        EvalError::new("CAST_OVERFLOW", format!("The value {value} of type {from} does not fit {to}."))
            .with_help("use `TRY_CAST` to get NULL instead")
    }
}

/// Kernels of the arrow crate fail only when they are given arrays that they do not take: that is our fault.
impl From<arrow::error::ArrowError> for EvalError {
    fn from(error: arrow::error::ArrowError) -> EvalError {
        EvalError::internal(error.to_string())
    }
}

/// A call that has no meaning: Spark's condition, a message, and which argument is at fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{condition}] {message}")]
pub struct ResolveError {
    /// Spark's error condition, such as `DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE`.
    pub condition: &'static str,
    /// One sentence.
    pub message: String,
    /// How to mend it.
    pub help: Vec<String>,
    /// The guilty argument, from 0.
    pub arg: Option<usize>,
}

impl ResolveError {
    /// An error of that condition.
    pub fn new(condition: &'static str, message: impl Into<String>) -> ResolveError {
        ResolveError { condition, message: message.into(), help: vec![], arg: None }
    }

    /// The same error with one more hint.
    pub fn with_help(mut self, help: impl Into<String>) -> ResolveError {
        self.help.push(help.into());
        self
    }

    /// The same error, blaming argument `arg`.
    pub fn at_arg(mut self, arg: usize) -> ResolveError {
        self.arg = Some(arg);
        self
    }
}

/// Bytes of a changelog or snapshot that do not hold an aggregate's state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("broken aggregate state: {0}")]
pub struct DecodeError(pub String);

impl DecodeError {
    /// The input ended early.
    pub fn truncated() -> DecodeError {
        DecodeError("the input ends too early".into())
    }
}

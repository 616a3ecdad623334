//! Why a query stopped.

use ssql_stdlib::EvalError;

use crate::connector::{ConnectorError, Domain};

/// A failure of a running query: a public condition, a message, and where it happened.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// Public condition (`DIVIDE_BY_ZERO`, `PATH_NOT_FOUND`, ...).
    pub condition: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    pub help: Vec<String>,
    /// Byte offsets in the script of the expression that failed.
    pub span: Option<(u32, u32)>,
    /// Where it happened, as far as that is known.
    pub place: Option<Box<Place>>,
    /// Whose fault it is.
    pub domain: Domain,
    /// Whether running the query again may help.
    pub retry: bool,
    /// The cause.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Where in a running query a failure happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The query.
    pub query: Option<String>,
    /// Its micro-batch, if one was running.
    pub batch: Option<u64>,
    /// The operator, as the plan names and numbers it.
    pub operator: Option<String>,
}

/// Result of the engine's own functions.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

impl EngineError {
    /// A failure with this condition and message; no help, span or batch yet.
    pub fn new(condition: impl Into<String>, domain: Domain, message: impl Into<String>) -> EngineError {
        EngineError {
            condition: condition.into(),
            message: message.into(),
            help: Vec::new(),
            span: None,
            place: None,
            domain,
            retry: false,
            source: None,
        }
    }

    /// A bug of ours, said so.
    pub fn internal(message: impl Into<String>) -> EngineError {
        let mut error = EngineError::new("INTERNAL_ERROR", Domain::Internal, message);
        error.help.push("This is a bug in ssql. Please report it with the script and the message.".to_owned());
        error
    }

    /// The same with one more line of help.
    pub fn with_help(mut self, help: impl Into<String>) -> EngineError {
        self.help.push(help.into());
        self
    }

    /// The same, attributed to a micro-batch unless it already is.
    pub fn in_batch(mut self, batch: u64) -> EngineError {
        self.place().batch.get_or_insert(batch);
        self
    }

    /// The same, attributed to a query unless it already is.
    pub fn in_query(mut self, name: &str) -> EngineError {
        self.place().query.get_or_insert_with(|| name.to_owned());
        self
    }

    /// The same, attributed to an operator unless it already is.
    pub fn in_operator(mut self, name: impl FnOnce() -> String) -> EngineError {
        self.place().operator.get_or_insert_with(name);
        self
    }

    fn place(&mut self) -> &mut Place {
        self.place.get_or_insert_default()
    }

    /// A panic that was caught.
    pub fn of_panic(panic: &(dyn std::any::Any + Send)) -> EngineError {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let what = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        EngineError::internal(format!("a worker panicked: {what}"))
    }

    /// Whether an error of the system may be gone at the next attempt: a full disk, a lost connection or a time-out, but
    /// not a missing file or a missing right.
    pub fn is_transient(error: &std::io::Error) -> bool {
        use std::io::ErrorKind::*;
        !matches!(
            error.kind(),
            NotFound
                | PermissionDenied
                | AlreadyExists
                | InvalidInput
                | InvalidData
                | NotADirectory
                | IsADirectory
                | ReadOnlyFilesystem
                | Unsupported
                | InvalidFilename
        )
    }
}

impl From<EvalError> for EngineError {
    fn from(e: EvalError) -> EngineError {
        let mut error = EngineError::new(e.condition, Domain::User, e.message);
        error.help = e.help;
        error.span = e.origin.span;
        error
    }
}

impl From<ConnectorError> for EngineError {
    fn from(e: ConnectorError) -> EngineError {
        EngineError {
            condition: e.condition.to_owned(),
            message: e.message,
            help: e.help,
            span: None,
            place: None,
            domain: e.domain,
            retry: e.retry,
            source: e.source,
        }
    }
}

impl From<ssql_state::LogError> for EngineError {
    fn from(e: ssql_state::LogError) -> EngineError {
        let (condition, domain) = match &e {
            ssql_state::LogError::Io { .. } => ("FAILED_FILE_OPERATION", Domain::External),
            ssql_state::LogError::Corrupt { .. } => ("CHECKPOINT_CORRUPT", Domain::External),
        };
        let cause = std::error::Error::source(&e).map(|s| format!(": {s}")).unwrap_or_default();
        let mut error = EngineError::new(condition, domain, format!("{e}{cause}"));
        error.retry = matches!(&e, ssql_state::LogError::Io { source, .. } if EngineError::is_transient(source));
        error.source = Some(Box::new(e));
        error
    }
}

impl From<arrow::error::ArrowError> for EngineError {
    fn from(e: arrow::error::ArrowError) -> EngineError {
        let mut error = EngineError::internal(format!("a column operation failed: {e}"));
        error.source = Some(Box::new(e));
        error
    }
}

/// A failure that came back through a connector's callback: ours if it was ours, else the connector's.
impl From<Box<dyn std::error::Error + Send + Sync>> for EngineError {
    fn from(e: Box<dyn std::error::Error + Send + Sync>) -> EngineError {
        match e.downcast::<EngineError>() {
            Ok(ours) => *ours,
            Err(e) => match e.downcast::<ConnectorError>() {
                Ok(theirs) => (*theirs).into(),
                Err(e) => {
                    let mut error = EngineError::new("FAILED_READ", Domain::External, e.to_string());
                    error.source = Some(e);
                    error
                }
            },
        }
    }
}

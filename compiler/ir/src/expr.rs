//! Typed scalar expressions.
//!
//! The binder has settled every name, type, implicit cast and overload: an expression says exactly what is computed.
//! Forms that must not evaluate all their arguments (`CASE`, `AND`, `OR`, `COALESCE`) are kinds of their own, since an
//! ANSI error in an argument that is not needed must not be raised; all else is a [`ExprKind::Call`] by name into the
//! standard library, operators included (`"+"`, `"="`, `"upper"`).

use std::sync::Arc;

use crate::types::DataType;

/// An interned-by-sharing name: of a function, a relation, a connector.
pub type Symbol = Arc<str>;

/// Where in the script an expression stands, as byte offsets `start..end`. It takes no part in equality or printing:
/// two expressions that compute the same are equal wherever they were written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin {
    /// Byte offsets in the script; `None` for what the compiler made up.
    pub span: Option<(u32, u32)>,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

impl Origin {
    /// The origin `start..end`.
    pub fn new(start: u32, end: u32) -> Origin {
        Origin { span: Some((start, end)) }
    }
}

/// A typed expression over the columns of one operator's input.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What is computed.
    pub kind: ExprKind,
    /// Type of the result.
    pub data_type: DataType,
    /// Whether the result may be NULL.
    pub nullable: bool,
    /// Where it was written.
    pub origin: Origin,
}

/// The forms of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// Column of the operator's input, by position. (For a join's residual: left columns, then right.)
    Column(u32),
    /// A constant.
    Literal(Literal),
    /// A function or operator of the standard library, evaluated strictly. Argument types are already those that the
    /// resolved overload takes.
    Call {
        /// Canonical lower-case name (`"+"`, `"upper"`).
        function: Symbol,
        /// Arguments in order.
        args: Vec<Expr>,
    },
    /// Conversion of `input` to this expression's `data_type`.
    Cast {
        /// What is converted.
        input: Box<Expr>,
        /// How failure shows.
        mode: CastMode,
    },
    /// Three-valued AND; the right side is evaluated only for rows where the left is not false.
    And(Box<Expr>, Box<Expr>),
    /// Three-valued OR; the right side is evaluated only for rows where the left is not true.
    Or(Box<Expr>, Box<Expr>),
    /// First branch whose condition is true; else `otherwise`, else NULL. `IF` is a CASE with one branch.
    Case {
        /// (condition, value), in order.
        branches: Vec<(Expr, Expr)>,
        /// Value where no condition holds.
        otherwise: Option<Box<Expr>>,
    },
    /// First argument that is not NULL; later ones are evaluated only where needed.
    Coalesce(Vec<Expr>),
    /// A function literal; only as an argument of a higher-order function.
    Lambda {
        /// Parameters in order.
        params: Vec<LambdaParam>,
        /// Body; refers to parameters by [`ExprKind::LambdaVariable`] and to the row's columns by [`ExprKind::Column`].
        body: Box<Expr>,
    },
    /// A parameter of an enclosing lambda, by its id.
    LambdaVariable(u32),
    /// The value of the pipeline's subquery with that number (one row, one column; NULL if it has no row).
    ScalarSubquery(u32),
}

/// A lambda's parameter. Ids are unique within a pipeline, so nested lambdas never shadow.
#[derive(Debug, Clone, PartialEq)]
pub struct LambdaParam {
    /// Unique number.
    pub id: u32,
    /// Name as written, for printing.
    pub name: String,
    /// Type of the values bound to it.
    pub data_type: DataType,
    /// Whether they may be NULL.
    pub nullable: bool,
}

/// How a cast fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CastMode {
    /// ANSI: a value that does not fit is an error.
    Ansi,
    /// TRY_CAST: such a value gives NULL.
    Try,
}

/// A constant. Its type stands in the enclosing [`Expr`].
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// NULL of the enclosing type.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// TINYINT, SMALLINT, INT, BIGINT; DATE (days), TIMESTAMP and TIMESTAMP_NTZ (microseconds), day-time interval
    /// (microseconds), year-month interval (months).
    Int(i64),
    /// FLOAT, DOUBLE. A FLOAT is widened exactly.
    Float(f64),
    /// DECIMAL: the unscaled value.
    Decimal(i128),
    /// STRING.
    String(String),
    /// BINARY.
    Binary(Vec<u8>),
}

impl Expr {
    /// Column `index` of that type.
    pub fn column(index: u32, data_type: DataType, nullable: bool) -> Expr {
        Expr { kind: ExprKind::Column(index), data_type, nullable, origin: Origin::default() }
    }

    /// A constant of that type.
    pub fn literal(value: Literal, data_type: DataType) -> Expr {
        let nullable = value == Literal::Null;
        Expr { kind: ExprKind::Literal(value), data_type, nullable, origin: Origin::default() }
    }

    /// A call of `function`.
    pub fn call(function: &str, args: Vec<Expr>, data_type: DataType, nullable: bool) -> Expr {
        Expr {
            kind: ExprKind::Call { function: Symbol::from(function), args },
            data_type,
            nullable,
            origin: Origin::default(),
        }
    }

    /// The same expression with an origin.
    pub fn at(mut self, origin: Origin) -> Expr {
        self.origin = origin;
        self
    }

    /// Direct children, in order of evaluation.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::LambdaVariable(_) | ExprKind::ScalarSubquery(_) => {
                vec![]
            }
            ExprKind::Call { args, .. } | ExprKind::Coalesce(args) => args.iter().collect(),
            ExprKind::Cast { input, .. } => vec![input],
            ExprKind::And(a, b) | ExprKind::Or(a, b) => vec![a, b],
            ExprKind::Case { branches, otherwise } => {
                branches.iter().flat_map(|(c, v)| [c, v]).chain(otherwise.as_deref()).collect()
            }
            ExprKind::Lambda { body, .. } => vec![body],
        }
    }

    /// Direct children, to be changed in place.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::LambdaVariable(_) | ExprKind::ScalarSubquery(_) => {
                vec![]
            }
            ExprKind::Call { args, .. } | ExprKind::Coalesce(args) => args.iter_mut().collect(),
            ExprKind::Cast { input, .. } => vec![input],
            ExprKind::And(a, b) | ExprKind::Or(a, b) => vec![a, b],
            ExprKind::Case { branches, otherwise } => {
                branches.iter_mut().flat_map(|(c, v)| [c, v]).chain(otherwise.as_deref_mut()).collect()
            }
            ExprKind::Lambda { body, .. } => vec![body],
        }
    }

    /// Calls `visit` on this expression and all below it, parents first.
    pub fn walk(&self, visit: &mut impl FnMut(&Expr)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// Calls `visit` on all expressions below this one and then on it, to be changed in place.
    pub fn walk_mut(&mut self, visit: &mut impl FnMut(&mut Expr)) {
        for child in self.children_mut() {
            child.walk_mut(visit);
        }
        visit(self);
    }
}

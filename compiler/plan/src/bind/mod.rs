//! The binder: from a query's syntax tree to a [`Query`] whose names, types, implicit casts and overloads are settled.
//!
//! One [`Binder`] serves one statement. It keeps going after a mistake wherever the rest can still be judged (other
//! items of a SELECT list, other clauses) and collects what it finds in `errors`.

mod aggregate;
mod analytic;
mod correlate;
mod expr;
mod from;
mod function;
mod grouping;
mod interval;
mod join;
mod literal;
mod names;
mod operators;
mod pivot;
mod query;
mod select;
mod setop;
mod subquery;
mod types;
mod window;

use std::cell::RefCell;
use std::rc::Rc;

use ssql_grammar::ast::StreamClauses;
use ssql_grammar::sql::{self, Spanned};
use ssql_grammar::{Diagnostic, Span, ast, embed};
use ssql_ir::{DataType, Expr, Field, LambdaParam, Origin};

use crate::catalog::Catalog;
use crate::diag::Fallible;
use crate::logical::{AggExpr, AnalyticExpr, ColumnId, Columns, OrderKey, Plan, Query, WindowEnd};

pub(crate) use interval::{IntervalValue, interval_of};
pub(crate) use operators::{cast, same_type};
pub(crate) use types::data_type;

/// A bound relation: its plan and the names it offers.
#[derive(Debug, Clone)]
pub(crate) struct Rel {
    pub plan: Plan,
    pub scope: Scope,
}

/// The names visible to expressions, in the order of `*`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    pub columns: Vec<ScopeColumn>,
    /// The session window of a `SESSION(TABLE ...)` in FROM: its start and end column, and the PARTITION BY columns.
    pub session: Option<SessionRows>,
}

/// Rows that carry their own span `[start, end)` and wait to be grouped into sessions.
#[derive(Debug, Clone)]
pub(crate) struct SessionRows {
    pub start: ColumnId,
    pub end: ColumnId,
    pub span: Span,
}

/// A visible column.
#[derive(Debug, Clone)]
pub(crate) struct ScopeColumn {
    /// Table name or alias.
    pub qualifier: Option<String>,
    pub name: String,
    pub id: ColumnId,
    /// Whether `*` shows it.
    pub star: bool,
    /// Whether it is found without its qualifier.
    pub bare: bool,
}

impl Scope {
    /// Adds a column that `*` shows.
    pub fn add(&mut self, qualifier: Option<&str>, name: impl Into<String>, id: ColumnId) {
        let qualifier = qualifier.map(str::to_string);
        self.columns.push(ScopeColumn { qualifier, name: name.into(), id, star: true, bare: true });
    }

    /// All columns under a new qualifier.
    pub fn requalified(mut self, qualifier: &str) -> Scope {
        for column in &mut self.columns {
            column.qualifier = Some(qualifier.to_string());
        }
        self
    }

    /// The columns that `*` shows.
    pub fn star(&self) -> impl Iterator<Item = &ScopeColumn> {
        self.columns.iter().filter(|c| c.star)
    }
}

/// Where an expression stands; decides what may stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    Select,
    Where,
    On,
    GroupBy,
    Having,
    OrderBy,
    Qualify,
    /// Inside an aggregate.
    Aggregate,
    /// Inside an aggregate's FILTER.
    AggregateFilter,
    /// VALUES, LIMIT, DDL, arguments of windows: expressions for themselves.
    Other,
}

/// A select item that others may refer to by name.
#[derive(Debug, Clone)]
pub(crate) struct Alias {
    pub name: String,
    pub expr: Expr,
}

/// Where bound aggregate calls are put; the calls' columns stand for them in the expression.
pub(crate) type AggSink = RefCell<Vec<(ColumnId, AggExpr)>>;

/// An analytic call with its OVER clause.
#[derive(Debug, Clone)]
pub(crate) struct PendingAnalytic {
    pub id: ColumnId,
    pub partition: Vec<Expr>,
    pub order: Vec<OrderKey>,
    pub call: AnalyticExpr,
}

/// A join that a subquery in an expression asks for.
#[derive(Debug, Clone)]
pub(crate) struct PendingJoin {
    pub kind: ssql_ir::JoinKind,
    pub plan: Plan,
    pub on: Option<Expr>,
    pub flag: Option<ColumnId>,
    pub span: Span,
}

/// The time window that a SELECT groups by or computes.
#[derive(Debug, Clone)]
pub(crate) struct GroupWindow {
    /// Start of each row's window, in the plan below the grouping.
    pub start: ColumnId,
    /// Its end.
    pub end: WindowEnd,
    /// Whether rows are merged into sessions.
    pub session: bool,
    /// How it is computed; None for the session rows of a table form, which carry it.
    pub definition: Option<window::Definition>,
    pub span: Span,
}

/// Everything an expression may refer to.
#[derive(Clone, Copy)]
pub(crate) struct Env<'e> {
    pub scope: &'e Scope,
    /// The enclosing query, for correlation.
    pub outer: Option<&'e Env<'e>>,
    pub clause: Clause,
    /// Earlier select items.
    pub aliases: &'e [Alias],
    /// Whether an alias wins over a column of the input.
    pub alias_first: bool,
    /// Where aggregates go; None: they may not stand here.
    pub aggs: Option<&'e AggSink>,
    pub analytics: Option<&'e RefCell<Vec<PendingAnalytic>>>,
    /// Joins that subqueries here ask for.
    pub joins: Option<&'e RefCell<Vec<PendingJoin>>>,
    /// The same for what stands inside an aggregate.
    pub input_joins: Option<&'e RefCell<Vec<PendingJoin>>>,
    /// The query's time window; the first call that names one puts it there.
    pub window: Option<&'e RefCell<Option<GroupWindow>>>,
    /// Number of keys of the grouping sets, and the column that holds the grouping id.
    pub grouping: Option<&'e grouping::GroupingIds>,
    /// Parameters of a SQL function that is being inlined.
    pub params: &'e [(String, Expr)],
    pub lambda: Option<&'e LambdaFrame<'e>>,
}

/// Parameters of the lambdas around an expression, innermost first.
pub(crate) struct LambdaFrame<'e> {
    pub params: Vec<LambdaParam>,
    pub outer: Option<&'e LambdaFrame<'e>>,
}

impl<'e> Env<'e> {
    /// An environment of this scope and nothing else.
    pub fn new(scope: &'e Scope, clause: Clause) -> Env<'e> {
        Env {
            scope,
            outer: None,
            clause,
            aliases: &[],
            alias_first: false,
            aggs: None,
            analytics: None,
            joins: None,
            input_joins: None,
            window: None,
            grouping: None,
            params: &[],
            lambda: None,
        }
    }
}

/// A CTE in force, with those before it.
#[derive(Clone)]
pub(crate) struct Cte<'a> {
    name: &'a sql::Ident,
    columns: &'a [sql::TableAliasColumnDef],
    query: &'a sql::Query,
    before: Option<Rc<Cte<'a>>>,
}

/// Binds one statement.
pub(crate) struct Binder<'a> {
    pub catalog: &'a Catalog,
    pub columns: Columns,
    pub errors: Vec<Diagnostic>,
    pub subqueries: Vec<(Plan, ColumnId)>,
    /// Streaming clauses of the fragment being bound.
    clauses: &'a StreamClauses,
    /// Its span, where a node has none.
    fragment: Span,
    /// The reference to the view or function whose text is being bound: the spans of that text may be of another file.
    inside: Option<Span>,
    ctes: Option<Rc<Cte<'a>>>,
    /// WINDOW definitions of the SELECT being bound.
    windows: &'a [sql::NamedWindowDefinition],
    /// Views being bound, to refuse one that refers to itself.
    views: Vec<String>,
    next_lambda: u32,
    /// Number of the next random function without a seed.
    next_seed: i64,
    next_group: u32,
    depth: u32,
}

/// Nesting of queries and views that is taken.
const MAX_DEPTH: u32 = 64;

impl<'a> Binder<'a> {
    pub fn new(catalog: &'a Catalog, clauses: &'a StreamClauses, fragment: Span) -> Binder<'a> {
        Binder {
            catalog,
            columns: Columns::default(),
            errors: vec![],
            subqueries: vec![],
            clauses,
            fragment,
            inside: None,
            ctes: None,
            windows: &[],
            views: vec![],
            next_lambda: 0,
            next_seed: 0,
            next_group: 0,
            depth: 0,
        }
    }

    /// Where a node stands.
    pub fn span<T: Spanned>(&self, node: &T) -> Span {
        match self.inside {
            Some(span) => span,
            None => embed::span_of(node).map_or(self.fragment, |s| self.clauses.extents.complete(s)),
        }
    }

    /// Where an identifier stands.
    pub fn ident_span(&self, ident: &sql::Ident) -> Span {
        self.inside.or_else(|| embed::ident_span(ident)).unwrap_or(self.fragment)
    }

    /// A new group of event-time columns.
    pub fn new_group(&mut self) -> u32 {
        self.next_group += 1;
        self.next_group
    }

    /// The number of a new lambda parameter.
    fn new_lambda_id(&mut self) -> u32 {
        self.next_lambda += 1;
        self.next_lambda - 1
    }

    /// Keeps a mistake and goes on.
    pub fn report<T>(&mut self, result: Fallible<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(d) => {
                if !self.errors.contains(&d) {
                    self.errors.push(*d);
                }
                None
            }
        }
    }

    /// Binds the text of another statement (a view, a function) that is referred to at `at`.
    fn inside<T>(
        &mut self,
        at: Span,
        clauses: &'a StreamClauses,
        what: &str,
        bind: impl FnOnce(&mut Self) -> Fallible<T>,
    ) -> Fallible<T> {
        let clauses = std::mem::replace(&mut self.clauses, clauses);
        let inside = self.inside.replace(self.inside.unwrap_or(at));
        let ctes = self.ctes.take();
        let result = bind(self).map_err(|d| Box::new(d.with_note(format!("It arises inside {what}."))));
        self.clauses = clauses;
        self.inside = inside;
        self.ctes = ctes;
        result
    }

    /// A whole query.
    pub fn bind(&mut self, query: &'a ast::Query) -> Fallible<Query> {
        let rel = self.bind_query(&query.sql, None)?;
        let output = rel.scope.star().map(|c| (c.id, c.name.clone())).collect();
        Ok(Query {
            plan: rel.plan,
            output,
            subqueries: std::mem::take(&mut self.subqueries),
            columns: std::mem::take(&mut self.columns),
            keep_late: false,
        })
    }

    /// An expression over no columns.
    pub fn bind_constant(&mut self, expr: &'a sql::Expr) -> Fallible<Expr> {
        let scope = Scope::default();
        self.bind_expr(expr, &Env::new(&scope, Clause::Other))
    }

    /// An expression over these columns, whose ids are their positions.
    pub fn bind_over(&mut self, expr: &'a sql::Expr, fields: &[Field]) -> Fallible<Expr> {
        let mut scope = Scope::default();
        for field in fields {
            let id = self.columns.add(&field.name, field.data_type.clone(), field.nullable);
            scope.add(None, &field.name, id);
        }
        self.bind_expr(expr, &Env::new(&scope, Clause::Other))
    }

    /// A type of the script.
    pub fn bind_type(&self, t: &sql::DataType) -> Fallible<DataType> {
        data_type(t, self.inside.unwrap_or(self.fragment))
    }
}

/// A span as an origin.
pub(crate) fn origin_at(span: Span) -> Origin {
    Origin::new(span.start, span.end)
}

//! Subqueries in expressions: scalar, IN, EXISTS; and WHERE, where they become joins.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, BinaryOperator, UnaryOperator};
use ssql_ir::{DataType, Expr, ExprKind, JoinKind};

use super::operators::{and, is_null, not, or};
use super::{Binder, Clause, Env, PendingJoin, Rel, Scope, origin_at};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{ColumnId, Plan, conjunction};

impl<'a> Binder<'a> {
    /// A subquery inside an expression: it must not read a stream.
    fn bind_inner(&mut self, q: &'a sql::Query, span: Span, env: &Env<'_>) -> Fallible<Rel> {
        let inner = Env { aggs: None, analytics: None, joins: None, input_joins: None, ..*env };
        let rel = self.bind_query(q, Some(&inner))?;
        if rel.plan.streaming() {
            return Err(Box::new(crate::check::rule("stream-in-subquery").diagnostic(span)));
        }
        Ok(rel)
    }

    /// WHERE: subqueries that are conjuncts of their own become semi and anti joins, the rest a filter.
    pub(super) fn bind_where(
        &mut self,
        mut plan: Plan,
        scope: &Scope,
        condition: &'a sql::Expr,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Plan> {
        let env = Env { outer, ..Env::new(scope, Clause::Where) };
        let span = self.span(condition);
        let mut parts = vec![];
        split(condition, &mut parts);
        let mut predicates = vec![];
        let mut pending = vec![];
        for part in parts {
            let (inner, negated) = strip_not(part);
            let at = self.span(inner);
            match inner {
                sql::Expr::Exists { subquery, negated: n } => {
                    pending.push(self.exists_join(subquery, negated != *n, at, &env)?);
                }
                sql::Expr::In { expr, target: sql::InTarget::Subquery(q), negated: n, .. } => {
                    pending.push(self.in_join(expr, q, negated != *n, at, &env)?);
                }
                _ => {
                    let joins = std::cell::RefCell::new(vec![]);
                    let inner = Env { joins: Some(&joins), ..env };
                    let bound = self.bind_expr(part, &inner)?;
                    predicates.push(self.to_boolean(bound, "WHERE", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", at)?);
                    plan = self.apply_joins(plan, joins.into_inner());
                }
            }
        }
        if let Some(predicate) = conjunction(predicates) {
            plan = plan.filter(predicate, span);
        }
        Ok(self.apply_joins(plan, pending))
    }

    fn exists_join(&mut self, q: &'a sql::Query, negated: bool, span: Span, env: &Env<'_>) -> Fallible<PendingJoin> {
        let rel = self.bind_inner(q, span, env)?;
        let visible = visible(env);
        let (plan, pulled) = self.decorrelate(rel.plan, &visible, span)?;
        let kind = if negated { JoinKind::LeftAnti } else { JoinKind::LeftSemi };
        Ok(PendingJoin { kind, plan, on: conjunction(pulled), flag: None, span })
    }

    fn in_join(
        &mut self,
        x: &'a sql::Expr,
        q: &'a sql::Query,
        negated: bool,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<PendingJoin> {
        let (plan, equal, pulled) = self.bind_in_parts(x, q, span, env)?;
        if !negated {
            let on = conjunction(std::iter::once(equal).chain(pulled));
            return Ok(PendingJoin { kind: JoinKind::LeftSemi, plan, on, flag: None, span });
        }
        let single = matches!(&equal.kind, ExprKind::Call { function, .. } if &**function == "=");
        if pulled.is_empty() && single {
            return Ok(PendingJoin { kind: JoinKind::NullAwareAnti, plan, on: Some(equal), flag: None, span });
        }
        let unknown = is_null(equal.clone(), false);
        let maybe = or(equal, unknown);
        let on = conjunction(std::iter::once(maybe).chain(pulled));
        Ok(PendingJoin { kind: JoinKind::LeftAnti, plan, on, flag: None, span })
    }

    /// `x IN (subquery)`: the subquery, the equality, and the predicates that tie it to the row.
    fn bind_in_parts(
        &mut self,
        x: &'a sql::Expr,
        q: &'a sql::Query,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<(Plan, Expr, Vec<Expr>)> {
        let items: Vec<&'a sql::Expr> = match x {
            sql::Expr::Tuple(items) => items.iter().collect(),
            other => vec![other],
        };
        let left = items.iter().map(|e| self.bind_expr(e, env)).collect::<Fallible<Vec<_>>>()?;
        let rel = self.bind_inner(q, span, env)?;
        let ids: Vec<ColumnId> = rel.scope.star().map(|c| c.id).collect();
        if ids.len() != left.len() {
            return fail(
                "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH",
                format!("IN compares {} columns with the {} of the subquery", left.len(), ids.len()),
                span,
            );
        }
        let (plan, pulled) = self.decorrelate(rel.plan, &visible(env), span)?;
        let mut all: Option<Expr> = None;
        for (value, id) in left.into_iter().zip(ids) {
            let other = self.columns.expr(id);
            if ssql_stdlib::common_type(&value.data_type, &other.data_type).is_none() {
                return fail(
                    "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH",
                    format!("IN compares {} with {}", value.data_type, other.data_type),
                    span,
                );
            }
            let equal = self.equal("=", value, other, span)?;
            all = Some(match all {
                Some(a) => and(a, equal),
                None => equal,
            });
        }
        let Some(equal) = all else {
            return fail("PARSE_SYNTAX_ERROR", "IN needs a value on its left", span);
        };
        Ok((plan, equal, pulled))
    }

    /// EXISTS as a value.
    pub(super) fn bind_exists(
        &mut self,
        q: &'a sql::Query,
        negated: bool,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let join = self.exists_join(q, false, span, env)?;
        self.flagged(join, negated, span, env)
    }

    /// IN (subquery) as a value.
    pub(super) fn bind_in_subquery(
        &mut self,
        x: &'a sql::Expr,
        q: &'a sql::Query,
        negated: bool,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let join = self.in_join(x, q, false, span, env)?;
        self.flagged(join, negated, span, env)
    }

    fn flagged(&mut self, mut join: PendingJoin, negated: bool, span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let Some(joins) = env.joins else { return self.no_subquery_here(span) };
        let flag = self.columns.add("exists", DataType::Boolean, false);
        join.kind = JoinKind::Existence;
        join.flag = Some(flag);
        joins.borrow_mut().push(join);
        let e = self.columns.expr(flag).at(origin_at(span));
        Ok(if negated { not(e) } else { e })
    }

    fn no_subquery_here<T>(&self, span: Span) -> Fallible<T> {
        fail_help(
            "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY",
            "a subquery that depends on the row cannot stand here",
            span,
            "Compute it in SELECT or WHERE, or join it in FROM.",
        )
    }

    /// A subquery used as one value.
    pub(super) fn bind_scalar_subquery(&mut self, q: &'a sql::Query, span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let rel = self.bind_inner(q, span, env)?;
        let ids: Vec<ColumnId> = rel.scope.star().map(|c| c.id).collect();
        let [id] = ids.as_slice() else {
            return fail(
                "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN",
                format!("a subquery used as a value must have one column, not {}", ids.len()),
                span,
            );
        };
        let data_type = self.columns.get(*id).data_type.clone();
        if !is_correlated(&rel.plan, &visible(env)) {
            self.subqueries.push((rel.plan, *id));
            let n = (self.subqueries.len() - 1) as u32;
            return Ok(Expr { kind: ExprKind::ScalarSubquery(n), data_type, nullable: true, origin: origin_at(span) });
        }
        let Some(joins) = env.joins else { return self.no_subquery_here(span) };
        let (plan, on, value) = self.scalar_join(rel.plan, *id, &visible(env), span)?;
        joins.borrow_mut().push(PendingJoin { kind: JoinKind::Left, plan, on, flag: None, span });
        Ok(value.at(origin_at(span)))
    }
}

/// Whether a plan reads columns of the enclosing query.
pub(super) fn is_correlated(plan: &Plan, outer: &[ColumnId]) -> bool {
    let mut hit = false;
    plan.walk(&mut |p| {
        p.expressions(&mut |e| e.walk(&mut |x| hit |= matches!(x.kind, ExprKind::Column(id) if outer.contains(&id))));
    });
    hit
}

/// The columns that a subquery in this place may refer to.
pub(super) fn visible(env: &Env<'_>) -> Vec<ColumnId> {
    let mut ids = vec![];
    let mut at = Some(env);
    while let Some(env) = at {
        ids.extend(env.scope.columns.iter().map(|c| c.id));
        at = env.outer;
    }
    ids
}

fn split<'a>(e: &'a sql::Expr, into: &mut Vec<&'a sql::Expr>) {
    match e {
        sql::Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            split(left, into);
            split(right, into);
        }
        sql::Expr::Nested(inner) if is_and(inner) => split(inner, into),
        _ => into.push(e),
    }
}

fn is_and(e: &sql::Expr) -> bool {
    matches!(e, sql::Expr::BinaryOp { op: BinaryOperator::And, .. })
}

fn strip_not(e: &sql::Expr) -> (&sql::Expr, bool) {
    match e {
        sql::Expr::Nested(inner) => strip_not(inner),
        sql::Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            let (inner, negated) = strip_not(expr);
            (inner, !negated)
        }
        _ => (e, false),
    }
}

//! Queries: WITH, the body, ORDER BY and LIMIT over set operations and VALUES.

use std::rc::Rc;

use ssql_grammar::Span;
use ssql_grammar::sql::{self, LimitClause, OrderByKind, SetExpr};
use ssql_ir::{CastMode, DataType, Expr, ExprKind, Literal};

use super::operators::cast;
use super::{Alias, Binder, Clause, Cte, Env, MAX_DEPTH, Rel, Scope};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{Node, OrderKey, Plan};

impl<'a> Binder<'a> {
    /// Binds a query; its scope has the output columns without qualifiers.
    pub(super) fn bind_query(&mut self, q: &'a sql::Query, outer: Option<&Env<'_>>) -> Fallible<Rel> {
        if self.depth >= MAX_DEPTH {
            return fail("RECURSION_LEVEL_LIMIT_EXCEEDED", "queries are nested too deeply", self.span(q));
        }
        self.depth += 1;
        let ctes = self.ctes.clone();
        let result = self.bind_query_inner(q, outer);
        self.ctes = ctes;
        self.depth -= 1;
        result
    }

    fn bind_query_inner(&mut self, q: &'a sql::Query, outer: Option<&Env<'_>>) -> Fallible<Rel> {
        let span = self.span(q);
        for (clause, present) in [
            ("FETCH", q.fetch.is_some()),
            ("FOR UPDATE", !q.locks.is_empty()),
            ("FOR", q.for_clause.is_some()),
            ("SETTINGS", q.settings.is_some()),
            ("FORMAT", q.format_clause.is_some()),
            ("the pipe operator `|>`", !q.pipe_operators.is_empty()),
        ] {
            if present {
                return self.not_in_dialect(clause, span);
            }
        }
        if let Some(with) = &q.with {
            self.bind_with(with)?;
        }
        let mut rel = match q.body.as_ref() {
            SetExpr::Select(select) => self.bind_select(select, q.order_by.as_ref(), outer)?,
            body => {
                let mut rel = self.bind_set_expr(body, outer)?;
                if let Some(order) = &q.order_by {
                    rel = self.bind_order_over(rel, order, outer)?;
                }
                rel
            }
        };
        if let Some(limit) = &q.limit_clause {
            rel = self.bind_limit(rel, limit, span)?;
        }
        Ok(rel)
    }

    fn bind_with(&mut self, with: &'a sql::With) -> Fallible<()> {
        if with.recursive {
            return self.not_in_dialect("WITH RECURSIVE", self.span(with));
        }
        let mut seen: Vec<&sql::Ident> = vec![];
        for cte in &with.cte_tables {
            let name = &cte.alias.name;
            if seen.iter().any(|s| super::names::same(&s.value, &name.value)) {
                return fail(
                    "DUPLICATED_CTE_NAMES",
                    format!("WITH defines `{}` more than once", name.value),
                    self.ident_span(name),
                );
            }
            seen.push(name);
            let before = self.ctes.clone();
            self.ctes = Some(Rc::new(Cte { name, columns: &cte.alias.columns, query: &cte.query, before }));
        }
        Ok(())
    }

    pub(super) fn bind_set_expr(&mut self, body: &'a SetExpr, outer: Option<&Env<'_>>) -> Fallible<Rel> {
        match body {
            SetExpr::Select(select) => self.bind_select(select, None, outer),
            SetExpr::Query(query) => self.bind_query(query, outer),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                self.bind_set_operation(left, *op, *set_quantifier, right, outer)
            }
            SetExpr::Values(values) => self.bind_values(values),
            SetExpr::Table(table) => {
                let span = self.span(body);
                let name = table.table_name.as_ref().map(|n| n.value.clone()).unwrap_or_default();
                self.bind_relation(&name, span)
            }
            other => self.not_in_dialect("this statement inside a query", self.span(other)),
        }
    }

    /// VALUES: columns `col1`, `col2`, ... of the rows' common types.
    pub(super) fn bind_values(&mut self, values: &'a sql::Values) -> Fallible<Rel> {
        let span = self.span(values);
        let width = values.rows.first().map_or(0, |r| row(r).len());
        let mut rows: Vec<Vec<Expr>> = vec![];
        for r in &values.rows {
            let cells = row(r);
            if cells.len() != width {
                return fail(
                    "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH",
                    format!("a row of VALUES has {} columns where the first has {width}", cells.len()),
                    cells.first().map(|c| self.span(c)).unwrap_or(span),
                );
            }
            let mut bound = vec![];
            for cell in cells {
                bound.push(self.bind_constant(cell)?);
            }
            rows.push(bound);
        }
        let mut columns = vec![];
        let mut scope = Scope::default();
        for i in 0..width {
            let mut common = rows[0][i].data_type.clone();
            for r in &rows[1..] {
                common = match ssql_stdlib::common_type(&common, &r[i].data_type) {
                    Some(t) => t,
                    None => {
                        return fail(
                            "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE",
                            format!("column {} of VALUES holds {common} and {}", i + 1, r[i].data_type),
                            span,
                        );
                    }
                };
            }
            let nullable = rows.iter().any(|r| r[i].nullable);
            for r in &mut rows {
                let cell = std::mem::replace(&mut r[i], Expr::literal(Literal::Null, DataType::Null));
                r[i] = cast(cell, &common, CastMode::Ansi);
            }
            let name = format!("col{}", i + 1);
            let id = self.columns.add(&name, common, nullable);
            scope.add(None, name, id);
            columns.push(id);
        }
        Ok(Rel { plan: Plan::leaf(Node::Values { columns, rows }, span), scope })
    }

    /// ORDER BY over a finished relation: ordinals, output columns and expressions over them.
    fn bind_order_over(&mut self, rel: Rel, order: &'a sql::OrderBy, outer: Option<&Env<'_>>) -> Fallible<Rel> {
        let span = self.span(order);
        let outputs: Vec<Alias> =
            rel.scope.star().map(|c| Alias { name: c.name.clone(), expr: self.columns.expr(c.id) }).collect();
        let env = Env { outer, ..Env::new(&rel.scope, Clause::OrderBy) };
        let mut keys = vec![];
        for (e, options) in order_items(order) {
            let Some(e) = e else {
                for output in &outputs {
                    keys.push(self.order_key(output.expr.clone(), options, span)?);
                }
                continue;
            };
            let at = self.span(e);
            let expr = match self.ordinal(e, outputs.len(), "ORDER_BY_POS_OUT_OF_RANGE")? {
                Some(i) => outputs[i].expr.clone(),
                None => self.bind_expr(e, &env)?,
            };
            keys.push(self.order_key(expr, options, at)?);
        }
        Ok(Rel { plan: sorted(rel.plan, keys, span), scope: rel.scope })
    }

    /// A whole number that stands for the item of that place (0-based here).
    pub(super) fn ordinal(&self, e: &sql::Expr, items: usize, condition: &'static str) -> Fallible<Option<usize>> {
        let sql::Expr::Value(v) = e else { return Ok(None) };
        let sql::Value::Number(text, false) = &v.value else { return Ok(None) };
        let Ok(n) = text.to_string().parse::<i64>() else { return Ok(None) };
        match usize::try_from(n) {
            Ok(n) if (1..=items).contains(&n) => Ok(Some(n - 1)),
            _ => fail(condition, format!("there is no item {n} in the SELECT list, which has {items}"), self.span(e)),
        }
    }

    fn bind_limit(&mut self, rel: Rel, clause: &'a LimitClause, span: Span) -> Fallible<Rel> {
        let (limit, offset) = match clause {
            LimitClause::LimitOffset { limit, offset, limit_by } => {
                if !limit_by.is_empty() {
                    return self.not_in_dialect("LIMIT ... BY", span);
                }
                (limit.as_ref(), offset.as_ref().map(|o| &o.value))
            }
            LimitClause::OffsetCommaLimit { .. } => return self.not_in_dialect("LIMIT offset, count", span),
        };
        let limit = match limit {
            Some(sql::Expr::Identifier(i)) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("all") => None,
            Some(e) => Some(self.row_count(e, &rel.scope, "LIMIT")?),
            None => None,
        };
        let offset_at = offset.map(|e| self.span(e));
        let offset = match offset {
            Some(e) => self.row_count(e, &rel.scope, "OFFSET")?,
            None => 0,
        };
        if limit.is_none() && offset == 0 {
            return Ok(rel);
        }
        let plan = Plan::over(Node::Limit { limit, offset }, rel.plan, offset_at.unwrap_or(span));
        Ok(Rel { plan, scope: rel.scope })
    }

    fn row_count(&mut self, e: &'a sql::Expr, scope: &Scope, clause: &str) -> Fallible<u64> {
        let span = self.span(e);
        let bound = self.bind_expr(e, &Env::new(scope, Clause::Other))?;
        let folded = crate::passes::fold::fold(bound, self.catalog);
        match folded.kind {
            ExprKind::Literal(Literal::Int(n)) if folded.data_type.is_integer() => match u64::try_from(n) {
                Ok(n) => Ok(n),
                Err(_) => {
                    fail("INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE", format!("{clause} must not be negative"), span)
                }
            },
            ExprKind::Literal(_) => fail_help(
                "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE",
                format!("{clause} takes a whole number, not {}", folded.data_type),
                span,
                format!("Write {clause} 10."),
            ),
            _ => fail("INVALID_LIMIT_LIKE_EXPRESSION.IS_UNFOLDABLE", format!("{clause} takes a constant"), span),
        }
    }
}

/// The items of an ORDER BY; None stands for ALL.
pub(super) fn order_items(order: &sql::OrderBy) -> Vec<(Option<&sql::Expr>, &sql::OrderByOptions)> {
    match &order.kind {
        OrderByKind::All(options) => vec![(None, options)],
        OrderByKind::Expressions(items) => items.iter().map(|i| (Some(&i.expr), &i.options)).collect(),
    }
}

/// The plan in that order.
pub(super) fn sorted(plan: Plan, keys: Vec<OrderKey>, span: Span) -> Plan {
    if keys.is_empty() {
        return plan;
    }
    Plan::over(Node::Sort { keys }, plan, span)
}

fn row(r: &sql::Parens<Vec<sql::Expr>>) -> &[sql::Expr] {
    &r.content
}

//! PIVOT and UNPIVOT.

use std::cell::RefCell;

use ssql_grammar::Span;
use ssql_grammar::sql::{self, NullInclusion, PivotValueSource, TableFactor};
use ssql_ir::{CastMode, DataType, Expr, ExprKind, Literal};

use super::operators::{and, bigint, cast, is_null, string};
use super::{AggSink, Binder, Clause, Env, Rel, Scope};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{AggExpr, ColumnId, Node, Plan};

impl<'a> Binder<'a> {
    /// `table PIVOT (agg FOR column IN (values))`: one column per value and aggregate, grouped by all columns that
    /// PIVOT does not name.
    pub(super) fn bind_pivot(&mut self, factor: &'a TableFactor, span: Span, outer: Option<&Env<'_>>) -> Fallible<Rel> {
        let TableFactor::Pivot { table, aggregate_functions, value_column, value_source, default_on_null, .. } = factor
        else {
            return self.not_in_dialect("this PIVOT", span);
        };
        if default_on_null.is_some() {
            return self.not_in_dialect("DEFAULT ON NULL", span);
        }
        let PivotValueSource::List(values) = value_source else {
            return fail_help(
                "PARSE_SYNTAX_ERROR",
                "PIVOT needs a list of values",
                span,
                "Write FOR column IN ('a', 'b').",
            );
        };
        let rel = self.bind_factor(table, None, outer)?;
        let env = Env { outer, ..Env::new(&rel.scope, Clause::Select) };
        let mut pivot_columns = vec![];
        for e in value_column {
            pivot_columns.push(self.bind_expr(e, &env)?);
        }
        // The aggregates once, unfiltered; each value then gets a filtered copy.
        let sink: AggSink = RefCell::new(vec![]);
        let agg_env = Env { aggs: Some(&sink), ..env };
        let mut outputs: Vec<(Option<String>, Expr)> = vec![];
        for f in aggregate_functions {
            let before = sink.borrow().len();
            let e = self.bind_expr(&f.expr, &agg_env)?;
            let mut calls = false;
            e.walk(&mut |x| {
                calls |= matches!(x.kind, ExprKind::Column(id) if sink.borrow().iter().any(|(a, _)| *a == id));
            });
            if !calls && sink.borrow().len() == before {
                return fail_help(
                    "NON_AGGREGATE_FUNCTION_IN_PIVOT",
                    "PIVOT takes aggregates",
                    self.span(&f.expr),
                    "Write for example PIVOT (sum(amount) FOR ...).",
                );
            }
            outputs.push((f.alias.as_ref().map(|a| a.value.clone()), e));
        }
        let aggs = sink.into_inner();
        let mut used: Vec<ColumnId> = vec![];
        for e in pivot_columns.iter().chain(aggs.iter().flat_map(|(_, a)| a.args.iter().chain(&a.filter))) {
            crate::logical::columns_of(e, &mut used);
        }
        let mut keys = vec![];
        let mut scope = Scope::default();
        for column in rel.scope.star().filter(|c| !used.contains(&c.id)) {
            let info = self.columns.get(column.id).clone();
            let id = self.columns.push(info);
            keys.push((id, self.columns.expr(column.id)));
            scope.add(None, &column.name, id);
        }
        let mut all_aggs: Vec<(ColumnId, AggExpr)> = vec![];
        let mut columns: Vec<(ColumnId, Expr)> = keys.iter().map(|(id, _)| (*id, self.columns.expr(*id))).collect();
        for value in values {
            let (condition, text) = self.pivot_condition(&pivot_columns, &value.expr, &env)?;
            let label = value.alias.as_ref().map(|a| a.value.clone()).unwrap_or(text);
            let present = self.columns.add("present", DataType::Int64, false);
            all_aggs.push((present, count_rows(condition.clone(), span)));
            let mut map = vec![];
            for (id, call) in &aggs {
                let new = self.columns.add(&*call.function, call.data_type.clone(), call.nullable);
                let filter = match &call.filter {
                    Some(f) => and(f.clone(), condition.clone()),
                    None => condition.clone(),
                };
                all_aggs.push((new, AggExpr { filter: Some(filter), ..call.clone() }));
                map.push((*id, new));
            }
            for (alias, e) in &outputs {
                let name = match (outputs.len(), alias) {
                    (1, _) => label.clone(),
                    (_, Some(alias)) => format!("{label}_{alias}"),
                    (_, None) => format!("{label}_{}", crate::explain::expr_text(e, &self.columns)),
                };
                let mut e = e.clone();
                e.walk_mut(&mut |x| {
                    if let ExprKind::Column(c) = x.kind
                        && let Some((_, new)) = map.iter().find(|(old, _)| *old == c)
                    {
                        x.kind = ExprKind::Column(*new);
                    }
                });
                // A value without rows is NULL in Spark, for counts too.
                let some = self.call(">", vec![self.columns.expr(present), bigint(0)], span)?;
                let e = self.case(vec![(some, e)], None, span)?;
                let id = self.columns.add(&name, e.data_type.clone(), true);
                columns.push((id, e));
                scope.add(None, name, id);
            }
        }
        let plan = Plan::over(Node::Aggregate { keys, aggs: all_aggs }, rel.plan, span);
        Ok(Rel { plan: Plan::over(Node::Project { columns }, plan, span), scope })
    }

    fn pivot_condition(&mut self, columns: &[Expr], value: &'a sql::Expr, env: &Env<'_>) -> Fallible<(Expr, String)> {
        let span = self.span(value);
        let parts: Vec<&'a sql::Expr> = match value {
            sql::Expr::Tuple(items) => items.iter().collect(),
            other => vec![other],
        };
        if parts.len() != columns.len() {
            return fail("PIVOT_VALUE_DATA_TYPE_MISMATCH", "this value does not fit the pivot columns", span);
        }
        let mut condition: Option<Expr> = None;
        let mut texts = vec![];
        for (column, part) in columns.iter().zip(parts) {
            let e = self.bind_expr(part, env)?;
            let e = crate::passes::fold::fold(e, self.catalog);
            texts.push(match &e.kind {
                ExprKind::Literal(Literal::String(s)) => s.clone(),
                ExprKind::Literal(_) => part.to_string(),
                _ => return fail("NON_LITERAL_PIVOT_VALUES", "the values of PIVOT must be constants", span),
            });
            let equal = self.call("<=>", vec![column.clone(), e], span)?;
            condition = Some(match condition {
                Some(c) => and(c, equal),
                None => equal,
            });
        }
        match condition {
            Some(condition) => Ok((condition, texts.join("_"))),
            None => fail("PARSE_SYNTAX_ERROR", "PIVOT names no column", span),
        }
    }

    /// `table UNPIVOT (value FOR name IN (columns))`: one row per named column.
    pub(super) fn bind_unpivot(
        &mut self,
        factor: &'a TableFactor,
        span: Span,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let TableFactor::Unpivot { table, value, name, columns, null_inclusion, .. } = factor else {
            return self.not_in_dialect("this UNPIVOT", span);
        };
        let sql::Expr::Identifier(value_name) = value else {
            return self.not_in_dialect("UNPIVOT of several values", span);
        };
        let rel = self.bind_factor(table, None, outer)?;
        let env = Env { outer, ..Env::new(&rel.scope, Clause::Select) };
        let mut values = vec![];
        for c in columns {
            let e = self.bind_expr(&c.expr, &env)?;
            let label = match &c.alias {
                Some(alias) => alias.value.clone(),
                None => super::expr::implicit_name(&c.expr).unwrap_or_else(|| c.expr.to_string()),
            };
            values.push((label, e));
        }
        let common = match self.common(values.iter().map(|(_, e)| e), "UNPIVOT", span) {
            Ok(t) => t,
            Err(d) => return fail("UNPIVOT_VALUE_DATA_TYPE_MISMATCH", d.message, span),
        };
        let mut used = vec![];
        values.iter().for_each(|(_, e)| crate::logical::columns_of(e, &mut used));
        let kept: Vec<(String, ColumnId)> =
            rel.scope.star().filter(|c| !used.contains(&c.id)).map(|c| (c.name.clone(), c.id)).collect();
        let mut scope = Scope::default();
        let mut ids = vec![];
        for (name, id) in &kept {
            let info = self.columns.get(*id).clone();
            let new = self.columns.push(info);
            ids.push(new);
            scope.add(None, name, new);
        }
        let name_id = self.columns.add(&name.value, DataType::String, false);
        let value_id = self.columns.add(&value_name.value, common.clone(), true);
        ids.extend([name_id, value_id]);
        scope.add(None, &name.value, name_id);
        scope.add(None, &value_name.value, value_id);
        let projections = values
            .into_iter()
            .map(|(label, e)| {
                let mut row: Vec<Expr> = kept.iter().map(|(_, id)| self.columns.expr(*id)).collect();
                row.push(string(&label));
                row.push(cast(e, &common, CastMode::Ansi));
                row
            })
            .collect();
        let mut plan = Plan::over(Node::Expand { columns: ids, projections }, rel.plan, span);
        if !matches!(null_inclusion, Some(NullInclusion::IncludeNulls)) {
            plan = plan.filter(is_null(self.columns.expr(value_id), true), span);
        }
        Ok(Rel { plan, scope })
    }
}

fn count_rows(filter: Expr, span: Span) -> AggExpr {
    AggExpr {
        function: ssql_ir::Symbol::from("count"),
        args: vec![],
        filter: Some(filter),
        distinct: false,
        ignore_nulls: false,
        order: vec![],
        data_type: DataType::Int64,
        nullable: false,
        span,
    }
}

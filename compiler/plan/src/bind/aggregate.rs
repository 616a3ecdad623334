//! Aggregate calls, and what may stand beside them once rows are grouped.

use ssql_grammar::sql::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentClause, NullTreatment,
};
use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{DataType, Expr, ExprKind, Literal};
use ssql_stdlib::ArgType;

use super::function::arguments;
use super::operators::{arg_type, cast_args, resolve_error};
use super::{Binder, Clause, Env, origin_at};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{AggExpr, ColumnId, OrderKey};

/// Functions whose second argument may be the BOOLEAN that stands for IGNORE NULLS.
const NULL_FLAG: [&str; 5] = ["first", "last", "first_value", "last_value", "any_value"];

impl<'a> Binder<'a> {
    /// An aggregate outside of OVER: its call goes to the sink, its column stands for it.
    pub(super) fn bind_aggregate(
        &mut self,
        name: &str,
        f: &'a sql::Function,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let Some(sink) = env.aggs else {
            return Err(self.misplaced_aggregate(name, span, env));
        };
        let inner = Env {
            clause: Clause::Aggregate,
            aggs: None,
            analytics: None,
            joins: env.input_joins,
            alias_first: false,
            ..*env
        };
        let call = self.bind_agg_call(name, f, span, &inner)?;
        let nested = call.args.iter().chain(&call.filter).any(|e| {
            let mut hit = false;
            e.walk(&mut |x| {
                hit |= matches!(x.kind, ExprKind::Column(id) if sink.borrow().iter().any(|(a, _)| *a == id))
            });
            hit
        });
        if nested {
            return fail("NESTED_AGGREGATE_FUNCTION", format!("`{name}` has another aggregate inside"), span);
        }
        let known = sink.borrow().iter().find(|(_, other)| same_call(other, &call)).map(|(id, _)| *id);
        let id = match known {
            Some(id) => id,
            None => {
                let id = self.columns.add(name, call.data_type.clone(), call.nullable);
                sink.borrow_mut().push((id, call));
                id
            }
        };
        Ok(self.columns.expr(id).at(origin_at(span)))
    }

    fn misplaced_aggregate(&self, name: &str, span: Span, env: &Env<'_>) -> Box<Diagnostic> {
        let (condition, message, help) = match env.clause {
            Clause::Where => (
                "INVALID_WHERE_CONDITION",
                format!("WHERE sees single rows and cannot hold the aggregate `{name}`"),
                "Put the condition into HAVING, after GROUP BY.",
            ),
            Clause::GroupBy => (
                "GROUP_BY_AGGREGATE",
                format!("GROUP BY cannot hold the aggregate `{name}`"),
                "Group by columns or by expressions over single rows.",
            ),
            Clause::Aggregate => (
                "NESTED_AGGREGATE_FUNCTION",
                format!("the aggregate `{name}` stands inside another aggregate"),
                "Compute the inner one in a subquery.",
            ),
            Clause::AggregateFilter => (
                "INVALID_AGGREGATE_FILTER.CONTAINS_AGGREGATE",
                format!("FILTER sees single rows and cannot hold the aggregate `{name}`"),
                "Compute the inner one in a subquery.",
            ),
            Clause::On => (
                "UNSUPPORTED_EXPR_FOR_OPERATOR",
                format!("a join condition cannot hold the aggregate `{name}`"),
                "Aggregate in a subquery and join that.",
            ),
            _ => (
                "UNSUPPORTED_EXPR_FOR_OPERATOR",
                format!("the aggregate `{name}` cannot stand here"),
                "Aggregates stand in SELECT, HAVING and ORDER BY.",
            ),
        };
        Box::new(Diagnostic::error(condition, message).at(span).with_help(help))
    }

    /// The call itself; `env` is that of the arguments.
    pub(super) fn bind_agg_call(
        &mut self,
        name: &str,
        f: &'a sql::Function,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<AggExpr> {
        let mut distinct = false;
        let mut ignore_nulls = f.null_treatment == Some(NullTreatment::IgnoreNulls);
        if let sql::FunctionArguments::List(list) = &f.args {
            distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
            for clause in &list.clauses {
                match clause {
                    FunctionArgumentClause::IgnoreOrRespectNulls(t) => ignore_nulls |= *t == NullTreatment::IgnoreNulls,
                    other => return self.not_in_dialect(&format!("`{other}` in `{name}`"), span),
                }
            }
        }
        let mut args = vec![];
        for arg in arguments(f) {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => args.push(self.bind_expr(e, env)?),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" && !distinct => {}
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_) | FunctionArgExpr::Wildcard)
                    if name == "count" =>
                {
                    for column in env.scope.star() {
                        args.push(self.columns.expr(column.id));
                    }
                }
                _ => return self.not_in_dialect(&format!("this argument of `{name}`"), span),
            }
        }
        if NULL_FLAG.contains(&name)
            && args.len() == 2
            && let ExprKind::Literal(Literal::Boolean(flag)) = args[1].kind
        {
            ignore_nulls |= flag;
            args.pop();
        }
        let mut order = vec![];
        for key in &f.within_group {
            order.push(self.bind_order_key(key, env)?);
        }
        if matches!(name, "percentile_cont" | "percentile_disc" | "mode") && !order.is_empty() {
            args.insert(0, order[0].expr.clone());
        }
        // `count(1)` counts rows as `count(*)` does.
        if name == "count" && !distinct && args.len() == 1 && is_constant(&args[0]) {
            args.clear();
        }
        let filter = match &f.filter {
            Some(p) => Some(self.bind_predicate(p, &Env { clause: Clause::AggregateFilter, aggs: None, ..*env })?),
            None => None,
        };
        let types: Vec<ArgType> = args.iter().map(arg_type).collect();
        let resolved = match ssql_stdlib::resolve_aggregate(name, &types, distinct) {
            Ok(resolved) => resolved,
            Err(e) => return Err(resolve_error(e, &args, span)),
        };
        Ok(AggExpr {
            function: resolved.function,
            args: cast_args(args, &resolved.arg_types),
            filter,
            distinct,
            ignore_nulls,
            order,
            data_type: resolved.data_type,
            nullable: resolved.nullable,
            span,
        })
    }

    /// One key of an ORDER BY; NULLs come first in ascending order and last in descending.
    pub(super) fn bind_order_key(&mut self, key: &'a sql::OrderByExpr, env: &Env<'_>) -> Fallible<OrderKey> {
        let expr = self.bind_expr(&key.expr, env)?;
        self.order_key(expr, &key.options, self.span(&key.expr))
    }

    pub(super) fn order_key(&self, expr: Expr, options: &sql::OrderByOptions, span: Span) -> Fallible<OrderKey> {
        let descending = match &options.sort {
            None | Some(sql::OrderBySort::Asc) => false,
            Some(sql::OrderBySort::Desc) => true,
            Some(sql::OrderBySort::Using(_)) => return self.not_in_dialect("ORDER BY ... USING", span),
        };
        if matches!(expr.data_type, DataType::Map(..)) {
            return fail("DATATYPE_MISMATCH.INVALID_ORDERING_TYPE", format!("{} has no order", expr.data_type), span);
        }
        Ok(OrderKey { expr, descending, nulls_first: options.nulls_first.unwrap_or(!descending) })
    }

    /// Puts grouped columns in place of what they stand for; any other column of the input is a mistake.
    pub(super) fn over_groups(
        &self,
        e: &mut Expr,
        groups: &[(Expr, Expr)],
        input: &[ColumnId],
        grouped: bool,
    ) -> Fallible<()> {
        if let Some((_, to)) = groups.iter().find(|(from, _)| from == e) {
            let origin = e.origin;
            *e = to.clone().at(origin);
            return Ok(());
        }
        if let ExprKind::Column(id) = e.kind
            && input.contains(&id)
        {
            let column = self.columns.get(id);
            let name = &column.name;
            let span = e.origin.span.map(|(s, t)| Span::new(s, t)).unwrap_or(self.fragment);
            if column.window_edge {
                return fail_help(
                    if grouped { "MISSING_AGGREGATION" } else { "MISSING_GROUP_BY" },
                    "the time window stands beside an aggregate, but GROUP BY does not name it",
                    span,
                    "Write the window in GROUP BY, for example GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES), and select window_start, window_end.",
                );
            }
            let windowed = groups
                .iter()
                .any(|(from, _)| matches!(from.kind, ExprKind::Column(c) if self.columns.get(c).window_edge));
            let help = match windowed && column.data_type == DataType::Timestamp {
                true => format!("Take window_start or window_end, the window of the rows, or one value: max({name})."),
                false => format!("Add `{name}` to GROUP BY, or take one value of it: any_value({name}), max({name})."),
            };
            return if grouped {
                fail_help(
                    "MISSING_AGGREGATION",
                    format!("`{name}` is neither grouped by nor inside an aggregate"),
                    span,
                    help,
                )
            } else {
                fail_help(
                    "MISSING_GROUP_BY",
                    format!("`{name}` stands beside an aggregate, but there is no GROUP BY"),
                    span,
                    format!("Add GROUP BY {name}."),
                )
            };
        }
        let place = e.origin.span.map(|(s, t)| Span::new(s, t));
        for child in e.children_mut() {
            self.over_groups(child, groups, input, grouped).map_err(|d| match place {
                // What was put together from parts without a place points at the whole.
                Some(place) if d.span() == self.fragment => Box::new(d.at(place)),
                _ => d,
            })?;
        }
        Ok(())
    }
}

fn is_constant(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Literal(l) if *l != Literal::Null)
}

fn same_call(a: &AggExpr, b: &AggExpr) -> bool {
    let mut b = b.clone();
    b.span = a.span;
    *a == b
}

//! Analytic calls: `f(...) OVER (PARTITION BY ... ORDER BY ... frame)`.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, WindowFrameBound, WindowFrameUnits, WindowType};
use ssql_ir::{CastMode, DataType, Expr, ExprKind, Frame, FrameBound, Literal};
use ssql_stdlib::{ArgType, FunctionKind};

use super::function::arguments;
use super::operators::{arg_type, cast, cast_args, resolve_error};
use super::{Binder, Clause, Env, PendingAnalytic, origin_at};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{AggExpr, AnalyticExpr, OrderKey};

impl<'a> Binder<'a> {
    pub(super) fn bind_analytic(
        &mut self,
        name: &str,
        f: &'a sql::Function,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let Some(sink) = env.analytics else {
            let clause = match env.clause {
                Clause::Where => "WHERE",
                Clause::GroupBy => "GROUP BY",
                Clause::Having => "HAVING",
                Clause::On => "ON",
                _ => "this place",
            };
            return fail_help(
                "WINDOW_FUNCTION_NOT_ALLOWED_IN_CLAUSE",
                format!("the analytic function `{name}` cannot stand in {clause}"),
                span,
                "Compute it in a subquery and filter outside, or use QUALIFY.",
            );
        };
        let inner = Env { analytics: None, ..*env };
        let (partition, order, frame) = self.bind_over_clause(f, span, &inner)?;
        let call = match ssql_stdlib::function_kind(name) {
            Some(FunctionKind::Aggregate) => self.bind_agg_call(name, f, span, &inner)?,
            Some(FunctionKind::Window) => self.bind_ranking(name, f, span, &inner)?,
            None => return Err(self.unknown_function(name, span)),
            _ => {
                return fail(
                    "UNSUPPORTED_EXPR_FOR_WINDOW",
                    format!("`{name}` is no aggregate and no analytic function"),
                    span,
                );
            }
        };
        if call.distinct {
            return fail(
                "DISTINCT_WINDOW_FUNCTION_UNSUPPORTED",
                format!("`{name}` cannot be DISTINCT over a window"),
                span,
            );
        }
        let ranking = ssql_stdlib::function_kind(name) == Some(FunctionKind::Window);
        if ranking && order.is_empty() {
            return fail_help(
                "WINDOW_FUNCTION_FRAME_NOT_ORDERED",
                format!("`{name}` needs an order of the rows"),
                span,
                "Add ORDER BY inside OVER (...).",
            );
        }
        let frame = match frame {
            Some(frame) => frame,
            None if ranking && name != "nth_value" => {
                Frame { rows: true, start: FrameBound::Unbounded, end: FrameBound::CurrentRow }
            }
            None if order.is_empty() => Frame { rows: true, start: FrameBound::Unbounded, end: FrameBound::Unbounded },
            None => Frame { rows: false, start: FrameBound::Unbounded, end: FrameBound::CurrentRow },
        };
        let id = self.columns.add(name, call.data_type.clone(), call.nullable);
        sink.borrow_mut().push(PendingAnalytic { id, partition, order, call: AnalyticExpr { call, frame } });
        Ok(self.columns.expr(id).at(origin_at(span)))
    }

    fn bind_ranking(&mut self, name: &str, f: &'a sql::Function, span: Span, env: &Env<'_>) -> Fallible<AggExpr> {
        let mut args = vec![];
        for arg in arguments(f) {
            match arg {
                sql::FunctionArg::Unnamed(sql::FunctionArgExpr::Expr(e)) => {
                    let bound = self.bind_expr(e, env)?;
                    args.push(crate::passes::fold::fold(bound, self.catalog));
                }
                _ => return self.not_in_dialect(&format!("this argument of `{name}`"), span),
            }
        }
        let ignore = f.null_treatment == Some(sql::NullTreatment::IgnoreNulls)
            || matches!(&f.args, sql::FunctionArguments::List(l) if l.clauses.iter().any(|c| matches!(
                c,
                sql::FunctionArgumentClause::IgnoreOrRespectNulls(sql::NullTreatment::IgnoreNulls)
            )));
        let types: Vec<ArgType> = args.iter().map(arg_type).collect();
        let resolved = match ssql_stdlib::resolve_window(name, &types) {
            Ok(resolved) => resolved,
            Err(e) => return Err(resolve_error(e, &args, span)),
        };
        Ok(AggExpr {
            function: resolved.function,
            args: cast_args(args, &resolved.arg_types)
                .into_iter()
                .map(|a| crate::passes::fold::fold(a, self.catalog))
                .collect(),
            filter: None,
            distinct: false,
            ignore_nulls: ignore,
            order: vec![],
            data_type: resolved.data_type,
            nullable: resolved.nullable,
            span,
        })
    }

    fn bind_over_clause(
        &mut self,
        f: &'a sql::Function,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<(Vec<Expr>, Vec<OrderKey>, Option<Frame>)> {
        let spec = match &f.over {
            Some(WindowType::WindowSpec(spec)) => spec,
            Some(WindowType::NamedWindow(name)) => return self.bind_named_window(name, span, env, 0),
            None => return Ok((vec![], vec![], None)),
        };
        self.bind_window_spec(spec, span, env, 0)
    }

    fn bind_named_window(
        &mut self,
        name: &sql::Ident,
        span: Span,
        env: &Env<'_>,
        depth: usize,
    ) -> Fallible<(Vec<Expr>, Vec<OrderKey>, Option<Frame>)> {
        let windows = self.windows;
        let found = windows.iter().find(|w| super::names::same(&w.0.value, &name.value));
        let Some(definition) = found.filter(|_| depth <= windows.len()) else {
            return fail(
                "MISSING_WINDOW_SPECIFICATION",
                format!("there is no window `{}` in this query", name.value),
                span,
            );
        };
        match &definition.1 {
            sql::NamedWindowExpr::NamedWindow(other) => self.bind_named_window(other, span, env, depth + 1),
            sql::NamedWindowExpr::WindowSpec(spec) => self.bind_window_spec(spec, span, env, depth + 1),
        }
    }

    fn bind_window_spec(
        &mut self,
        spec: &'a sql::WindowSpec,
        span: Span,
        env: &Env<'_>,
        depth: usize,
    ) -> Fallible<(Vec<Expr>, Vec<OrderKey>, Option<Frame>)> {
        let (mut partition, mut order, mut frame) = match &spec.window_name {
            Some(base) => self.bind_named_window(base, span, env, depth + 1)?,
            None => (vec![], vec![], None),
        };
        for e in &spec.partition_by {
            partition.push(self.bind_expr(e, env)?);
        }
        for key in &spec.order_by {
            order.push(self.bind_order_key(key, env)?);
        }
        if let Some(f) = &spec.window_frame {
            frame = Some(self.bind_frame(f, &order, span, env)?);
        }
        Ok((partition, order, frame))
    }

    fn bind_frame(
        &mut self,
        f: &'a sql::WindowFrame,
        order: &[OrderKey],
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Frame> {
        let rows = match f.units {
            WindowFrameUnits::Rows => true,
            WindowFrameUnits::Range => false,
            WindowFrameUnits::Groups => return self.not_in_dialect("a GROUPS frame", span),
        };
        let computed = |b: &WindowFrameBound| {
            matches!(b, WindowFrameBound::Preceding(Some(_)) | WindowFrameBound::Following(Some(_)))
        };
        if !rows {
            if order.is_empty() {
                return fail("DATATYPE_MISMATCH.RANGE_FRAME_WITHOUT_ORDER", "a RANGE frame needs an ORDER BY", span);
            }
            if order.len() > 1 && (computed(&f.start_bound) || f.end_bound.as_ref().is_some_and(computed)) {
                return fail_help(
                    "DATATYPE_MISMATCH.RANGE_FRAME_MULTI_ORDER",
                    "a RANGE frame with a distance takes one ORDER BY key only",
                    span,
                    "Order by one key, or use ROWS.",
                );
            }
        }
        let key = order.first().map(|k| k.expr.data_type.clone());
        let start = self.bind_bound(&f.start_bound, rows, key.as_ref(), span, env)?;
        let end = match &f.end_bound {
            Some(b) => self.bind_bound(b, rows, key.as_ref(), span, env)?,
            None => FrameBound::CurrentRow,
        };
        Ok(Frame { rows, start, end })
    }

    fn bind_bound(
        &mut self,
        b: &'a WindowFrameBound,
        rows: bool,
        key: Option<&DataType>,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<FrameBound> {
        let (distance, preceding) = match b {
            WindowFrameBound::CurrentRow => return Ok(FrameBound::CurrentRow),
            WindowFrameBound::Preceding(None) | WindowFrameBound::Following(None) => return Ok(FrameBound::Unbounded),
            WindowFrameBound::Preceding(Some(e)) => (e, true),
            WindowFrameBound::Following(Some(e)) => (e, false),
        };
        let mut bound = self.bind_expr(distance, env)?;
        let wanted = match key {
            _ if rows => DataType::Int64,
            Some(t) if t.is_numeric() => t.clone(),
            Some(DataType::Date) if bound.data_type.is_integer() => DataType::Int32,
            _ => bound.data_type.clone(),
        };
        let at = self.span(distance.as_ref());
        if !ssql_stdlib::can_cast(&bound.data_type, &wanted) {
            return fail(
                "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE",
                "this distance does not fit the order",
                at,
            );
        }
        bound = crate::passes::fold::fold(cast(bound, &wanted, CastMode::Ansi), self.catalog);
        match bound.kind {
            ExprKind::Literal(l) if l != Literal::Null => {
                Ok(if preceding { FrameBound::Preceding(l) } else { FrameBound::Following(l) })
            }
            _ => fail(
                "DATATYPE_MISMATCH.SPECIFIED_WINDOW_FRAME_WITHOUT_FOLDABLE",
                "the distance of a frame must be a constant",
                span,
            ),
        }
    }
}

//! FROM: relations, views, CTEs, subqueries, table functions, watermarks, LATERAL VIEW.

use ssql_grammar::sql::{self, FunctionArg, FunctionArgExpr, TableFactor};
use ssql_grammar::{Diagnostic, Span, ast, embed};
use ssql_ir::{DataType, Expr, Schema};
use ssql_stdlib::{ArgType, FunctionKind};

use super::interval::IntervalValue;
use super::operators::{arg_type, cast_args, resolve_error};
use super::{Binder, Clause, Cte, Env, MAX_DEPTH, Rel, Scope};
use crate::catalog::{Catalog, Relation, RelationKind, WatermarkSpec};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{ColumnId, EventTime, Node, Plan};

impl<'a> Binder<'a> {
    /// The whole FROM clause; without one, a single row without columns.
    pub(super) fn bind_from(
        &mut self,
        from: &'a [sql::TableWithJoins],
        span: Span,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let mut all: Option<Rel> = None;
        for item in from {
            let left = all.take();
            all = Some(match left {
                None => self.bind_table_with_joins(item, None, outer)?,
                Some(left) => self.bind_table_with_joins(item, Some(left), outer)?,
            });
        }
        Ok(all.unwrap_or_else(|| Rel {
            plan: Plan::leaf(Node::Values { columns: vec![], rows: vec![vec![]] }, span),
            scope: Scope::default(),
        }))
    }

    fn bind_table_with_joins(
        &mut self,
        item: &'a sql::TableWithJoins,
        before: Option<Rel>,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let mut left = match before {
            None => self.bind_factor(&item.relation, None, outer)?,
            Some(before) => self.bind_comma_join(before, &item.relation, outer)?,
        };
        for join in &item.joins {
            left = self.bind_join(left, join, outer)?;
        }
        Ok(left)
    }

    /// One relation of FROM. `left` is what a LATERAL one may refer to.
    pub(super) fn bind_factor(
        &mut self,
        factor: &'a TableFactor,
        left: Option<&Scope>,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let clauses = self.clauses;
        let span = self.span(factor);
        let mut rel = match factor {
            TableFactor::Table { name, args: Some(args), .. } => {
                self.bind_table_function(&object_name(name), &args.args, self.span(name), outer)?
            }
            TableFactor::Table { name, sample, version, .. } => {
                if sample.is_some() {
                    return self.refuse_sample(span);
                }
                if version.is_some() {
                    return self.not_in_dialect("time travel", span);
                }
                let at = self.span(name);
                let rel = self.bind_relation(&object_name(name), at)?;
                if let Some(stream) = clauses.stream_read(factor)
                    && !rel.plan.streaming()
                {
                    return fail_help(
                        "STREAM_READ_NOT_ALLOWED",
                        format!("`{}` is no stream", object_name(name)),
                        stream.to(at),
                        "Leave the word STREAM out.",
                    );
                }
                rel
            }
            TableFactor::Derived { subquery, sample, lateral, .. } => {
                if sample.is_some() {
                    return self.refuse_sample(span);
                }
                match left.filter(|_| *lateral) {
                    Some(scope) => {
                        let env = Env { outer, ..Env::new(scope, Clause::Other) };
                        self.bind_query(subquery, Some(&env))?
                    }
                    None => self.bind_query(subquery, outer)?,
                }
            }
            TableFactor::Function { name, args, .. } => {
                self.bind_table_function(&object_name(name), args, self.span(name), outer)?
            }
            TableFactor::TableFunction { expr: sql::Expr::Function(f), .. } => self.bind_table_function(
                &super::function::function_name(f),
                super::function::arguments(f),
                span,
                outer,
            )?,
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.bind_table_with_joins(table_with_joins, None, outer)?
            }
            TableFactor::Pivot { .. } => self.bind_pivot(factor, span, outer)?,
            TableFactor::Unpivot { .. } => self.bind_unpivot(factor, span, outer)?,
            other => return self.not_in_dialect(&format!("`{other}` in FROM"), span),
        };
        if let Some(watermark) = clauses.watermark(factor).or_else(|| self.subquery_watermark(factor)) {
            rel = self.bind_watermark(rel, watermark)?;
        }
        if let Some(alias) = factor_alias(factor) {
            rel.scope = self.aliased(rel.scope, alias)?;
        }
        Ok(rel)
    }

    /// The watermark after a subquery, found by where the subquery begins: its recorded end may lie past the tree's
    /// where a clause was lifted out of its last words.
    fn subquery_watermark(&self, factor: &TableFactor) -> Option<&'a ast::Watermark> {
        let TableFactor::Derived { .. } = factor else { return None };
        let start = embed::factor_span(factor)?.start;
        self.clauses.watermarks.iter().find(|w| w.relation.start == start).map(|w| &w.watermark)
    }

    fn refuse_sample<T>(&self, span: Span) -> Fallible<T> {
        fail_help(
            "UNSUPPORTED_FEATURE.TABLESAMPLE",
            "TABLESAMPLE is not part of this dialect",
            span,
            "Filter instead, for example WHERE rand() < 0.5.",
        )
    }

    /// `AS alias [(columns)]`.
    fn aliased(&self, scope: Scope, alias: &'a sql::TableAlias) -> Fallible<Scope> {
        let mut scope = scope.requalified(&alias.name.value);
        if alias.columns.is_empty() {
            return Ok(scope);
        }
        let star = scope.columns.iter().filter(|c| c.star).count();
        if star != alias.columns.len() {
            return fail(
                "ASSIGNMENT_ARITY_MISMATCH",
                format!("`{}` has {star} columns, but {} names are given", alias.name.value, alias.columns.len()),
                self.ident_span(&alias.name),
            );
        }
        scope.columns.retain(|c| c.star);
        for (column, name) in scope.columns.iter_mut().zip(&alias.columns) {
            column.name = name.name.value.clone();
        }
        Ok(scope)
    }

    /// A named relation: a CTE, else a relation of the catalog.
    pub(super) fn bind_relation(&mut self, name: &str, span: Span) -> Fallible<Rel> {
        let mut at = self.ctes.clone();
        while let Some(cte) = at {
            if super::names::same(&cte.name.value, name) {
                return self.bind_cte(&cte, span);
            }
            at = cte.before.clone();
        }
        let relation = self.catalog.require(name, span)?;
        match relation.kind {
            RelationKind::View => self.bind_view(relation, span),
            RelationKind::Stream => self.bind_source(relation, true, span),
            RelationKind::Table => self.bind_source(relation, false, span),
            RelationKind::Sink => {
                let readable = relation.connector.as_ref().is_some_and(|c| c.name == "memory");
                if !readable {
                    return fail_help(
                        "UNSUPPORTED_FEATURE.READ_FROM_SINK",
                        format!("the sink `{}` cannot be read, for it is no memory sink", relation.name),
                        span,
                        "Create a table over the same location.",
                    );
                }
                if relation.schema.is_none() {
                    return fail_help(
                        "TABLE_OR_VIEW_NOT_FOUND",
                        format!("the sink `{}` has no columns yet, for no query writes to it", relation.name),
                        span,
                        "Start a query with INSERT INTO it first.",
                    );
                }
                self.bind_source(relation, false, span)
            }
        }
    }

    fn bind_cte(&mut self, cte: &Cte<'a>, span: Span) -> Fallible<Rel> {
        let ctes = std::mem::replace(&mut self.ctes, cte.before.clone());
        let result = self.bind_query(cte.query, None);
        self.ctes = ctes;
        let mut scope = result.as_ref().map(|r| r.scope.clone()).unwrap_or_default();
        let plan = result?.plan;
        if !cte.columns.is_empty() {
            if cte.columns.len() != scope.columns.len() {
                return fail(
                    "ASSIGNMENT_ARITY_MISMATCH",
                    format!(
                        "`{}` has {} columns, but {} names are given",
                        cte.name.value,
                        scope.columns.len(),
                        cte.columns.len()
                    ),
                    span,
                );
            }
            for (column, name) in scope.columns.iter_mut().zip(cte.columns) {
                column.name = name.name.value.clone();
            }
        }
        Ok(Rel { plan, scope: scope.requalified(&cte.name.value) })
    }

    fn bind_view(&mut self, relation: &'a Relation, span: Span) -> Fallible<Rel> {
        let Some(view) = &relation.view else {
            return fail("INTERNAL_ERROR", format!("the view `{}` has no text", relation.name), span);
        };
        let key = relation.name.to_lowercase();
        if self.views.contains(&key) || self.views.len() >= MAX_DEPTH as usize {
            return fail("RECURSIVE_VIEW", format!("the view `{}` refers to itself", relation.name), span);
        }
        self.views.push(key);
        let what = format!("the view `{}`", relation.name);
        let result = self.inside(span, &view.query.clauses, &what, |b| b.bind_query(&view.query.sql, None));
        self.views.pop();
        let mut rel = result?;
        if !view.columns.is_empty() {
            for (column, name) in rel.scope.columns.iter_mut().zip(&view.columns) {
                column.name = name.clone();
            }
        }
        rel.scope = rel.scope.requalified(&relation.name);
        Ok(rel)
    }

    fn bind_source(&mut self, relation: &'a Relation, streaming: bool, span: Span) -> Fallible<Rel> {
        let Some(schema) = &relation.schema else {
            return fail_help(
                "UNABLE_TO_INFER_SCHEMA",
                format!("the columns of `{}` are not known", relation.name),
                span,
                "Declare them in its CREATE statement.",
            );
        };
        let (columns, scope) = self.source_columns(schema, &relation.name);
        let node = Node::Source { relation: Catalog::symbol(&relation.name), streaming, columns };
        let mut rel = Rel { plan: Plan::leaf(node, span), scope };
        if let Some(w) = &relation.watermark {
            let what = format!("the stream `{}`", relation.name);
            let column = match &w.expr {
                None => rel.scope.columns.iter().find(|c| super::names::same(&c.name, &w.column)).map(|c| c.id),
                Some(e) => {
                    let scope = rel.scope.clone();
                    let bound = self
                        .inside(span, &e.clauses, &what, |b| b.bind_expr(&e.sql, &Env::new(&scope, Clause::Other)))?;
                    let id = self.columns.add(&w.column, bound.data_type.clone(), bound.nullable);
                    rel.plan = self.extend(rel.plan, vec![(id, bound)], span);
                    rel.scope.columns.retain(|c| !super::names::same(&c.name, &w.column));
                    rel.scope.add(Some(&relation.name), &w.column, id);
                    Some(id)
                }
            };
            let Some(column) = column else {
                return fail("INTERNAL_ERROR", format!("{what} has no column for its watermark"), span);
            };
            rel.plan = self.watermark(rel.plan, column, w.spec.clone(), span)?;
        }
        Ok(rel)
    }

    fn source_columns(&mut self, schema: &Schema, qualifier: &str) -> (Vec<(ColumnId, u32)>, Scope) {
        let mut scope = Scope::default();
        let mut columns = vec![];
        for (i, field) in schema.fields.iter().enumerate() {
            let id = self.columns.add(&field.name, field.data_type.clone(), field.nullable);
            columns.push((id, i as u32));
            scope.add(Some(qualifier), &field.name, id);
        }
        (columns, scope)
    }

    /// `relation WATERMARK expr [AS name] DELAY OF ...`.
    fn bind_watermark(&mut self, mut rel: Rel, w: &'a ast::Watermark) -> Fallible<Rel> {
        let at = self.inside.unwrap_or(w.span);
        let spec = self.watermark_spec(w)?;
        let Some(e) = &w.expr else {
            return fail("PARSE_SYNTAX_ERROR", "WATERMARK names no column", at);
        };
        let bound = self.bind_expr(&e.sql, &Env::new(&rel.scope, Clause::Other))?;
        let at = bound.origin.span.map(|(s, t)| Span::new(s, t)).unwrap_or(at);
        let column = match (&w.name, &bound.kind) {
            (None, ssql_ir::ExprKind::Column(id)) => *id,
            (None, _) => {
                return fail_help(
                    "REQUIRES_EXPLICIT_NAME_IN_WATERMARK_CLAUSE",
                    "a watermark over an expression needs a name for the new column",
                    at,
                    "Write WATERMARK expression AS name DELAY OF ...",
                );
            }
            (Some(name), _) => {
                let id = self.columns.add(&name.value, bound.data_type.clone(), bound.nullable);
                self.columns.get_mut(id).event_time = self.event_time_of(&bound);
                rel.plan = self.extend(rel.plan, vec![(id, bound)], at);
                let qualifier = rel.scope.columns.first().and_then(|c| c.qualifier.clone());
                rel.scope.add(qualifier.as_deref(), &name.value, id);
                id
            }
        };
        rel.plan = match self.watermark(rel.plan, column, spec, at) {
            Ok(plan) => plan,
            Err(d) => {
                return Err(match self.timestamps(&rel.scope).filter(|_| d.help.is_empty()) {
                    Some(names) => Box::new(d.with_help(format!("These columns could serve: {names}."))),
                    None => d,
                });
            }
        };
        Ok(rel)
    }

    fn watermark(&mut self, plan: Plan, column: ColumnId, spec: WatermarkSpec, span: Span) -> Fallible<Plan> {
        let info = self.columns.get(column);
        if info.data_type != DataType::Timestamp {
            return Err(Box::new(
                Diagnostic::error(
                    "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE",
                    format!("a watermark needs a TIMESTAMP column, and `{}` is {}", info.name, info.data_type),
                )
                .at(span),
            ));
        }
        if !plan.streaming() {
            // Spark drops a watermark over a static relation; event time means nothing there.
            return Ok(plan);
        }
        let group = self.new_group();
        self.columns.get_mut(column).event_time = Some(EventTime { group, add_micros: 0 });
        Ok(Plan::over(Node::Watermark { column, spec }, plan, span))
    }

    /// Delay, IDLE AFTER and MAX SKEW of a clause.
    pub(crate) fn watermark_spec(&mut self, w: &'a ast::Watermark) -> Fallible<WatermarkSpec> {
        let span = self.inside.unwrap_or(w.span);
        let micros = |value: IntervalValue, what: &str| match value.delay_micros() {
            Some(micros) if micros >= 0 => Ok(micros),
            _ => fail("INVALID_PARAMETER_VALUE.WATERMARK_DELAY", format!("{what} must not be negative"), span),
        };
        let delay = self.bind_interval(&w.delay.sql, "the delay")?;
        let delay = micros(delay, "the delay of a watermark")?;
        let mut further = vec![];
        for (e, what) in [(&w.idle_after, "IDLE AFTER"), (&w.max_skew, "MAX SKEW")] {
            further.push(match e {
                Some(e) => Some(self.bind_interval(&e.sql, what).and_then(|v| micros(v, what))?),
                None => None,
            });
        }
        let max_skew = further.pop().flatten();
        let idle_after = further.pop().flatten();
        Ok(WatermarkSpec { delay: ssql_ir::Delay { micros: delay }, idle_after, max_skew, span })
    }

    /// `TABLE s` or `TABLE (SELECT ...)` as an argument.
    pub(super) fn bind_table_argument(&mut self, e: &'a sql::Expr, outer: Option<&Env<'_>>) -> Fallible<Rel> {
        let span = self.span(e);
        match e {
            sql::Expr::Nested(inner) => self.bind_table_argument(inner, outer),
            sql::Expr::Identifier(i) => self.bind_relation(&i.value, span),
            sql::Expr::CompoundIdentifier(parts) => {
                let name = parts.iter().map(|p| p.value.as_str()).collect::<Vec<_>>().join(".");
                self.bind_relation(&name, span)
            }
            sql::Expr::Subquery(query) => self.bind_query(query, outer),
            _ => {
                fail_help("PARSE_SYNTAX_ERROR", "a table is needed here", span, "Write TABLE s or TABLE (SELECT ...).")
            }
        }
    }

    /// A table function in FROM: a window, a generator, `range`.
    fn bind_table_function(
        &mut self,
        name: &str,
        args: &'a [FunctionArg],
        span: Span,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let name = name.to_ascii_lowercase();
        if let Some(rel) = self.bind_window_table(&name, args, span, outer)? {
            return Ok(rel);
        }
        let scope = Scope::default();
        let env = Env { outer, ..Env::new(&scope, Clause::Other) };
        let mut bound = vec![];
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => bound.push(self.bind_expr(e, &env)?),
                _ => return self.not_in_dialect(&format!("this argument of `{name}`"), span),
            }
        }
        let row = Plan::leaf(Node::Values { columns: vec![], rows: vec![vec![]] }, span);
        if name == "range" {
            return self.bind_range(bound, row, span);
        }
        let (plan, ids, names) = self.generate(&name, bound, false, row, span)?;
        let mut scope = Scope::default();
        for (id, column) in ids.iter().zip(names) {
            scope.add(Some(&name), column, *id);
        }
        Ok(Rel { plan, scope })
    }

    /// `range([start,] end [, step [, partitions]])`, of constants; the number of partitions says nothing here.
    fn bind_range(&mut self, args: Vec<Expr>, row: Plan, span: Span) -> Fallible<Rel> {
        if !(1..=4).contains(&args.len()) {
            let message = format!("`range` takes 1 to 4 arguments, not {}", args.len());
            return fail("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", message, span);
        }
        let mut numbers = vec![];
        for arg in args {
            let t = arg.data_type.clone();
            if t == DataType::Null || !ssql_stdlib::can_cast(&t, &DataType::Int64) {
                return fail("UNEXPECTED_INPUT_TYPE", format!("`range` takes BIGINT, not {t}"), span);
            }
            let number = super::operators::cast(arg, &DataType::Int64, ssql_ir::CastMode::Ansi);
            match ssql_stdlib::fold_constant(&number, &ssql_stdlib::EvalContext::default()) {
                Some(ssql_ir::Literal::Int(n)) => numbers.push(n),
                _ => return fail("NON_FOLDABLE_ARGUMENT", "the arguments of `range` have to be constants", span),
            }
        }
        let (start, end) = if numbers.len() == 1 { (0, numbers[0]) } else { (numbers[0], numbers[1]) };
        let step = numbers.get(2).copied().unwrap_or(1);
        if step == 0 {
            return fail("FAILED_FUNCTION_CALL", "the step of `range` must not be 0", span);
        }
        // sequence() takes its last value in, range() leaves it out; an empty range has no rows.
        let (from, to, by) = (i128::from(start), i128::from(end), i128::from(step));
        let n = (to - from + by - by.signum()) / by;
        let all = match n {
            ..=0 => Expr::literal(ssql_ir::Literal::Null, DataType::array(DataType::Int64)),
            n => {
                let bounds = [start, (from + (n - 1) * by) as i64, step].map(super::operators::bigint);
                self.call("sequence", bounds.to_vec(), span)?
            }
        };
        let (plan, ids, _) = self.generate("explode", vec![all], false, row, span)?;
        let mut scope = Scope::default();
        scope.add(Some("range"), "id", ids[0]);
        Ok(Rel { plan, scope })
    }

    /// Adds what a generator makes of each row: the plan, the new columns and their names.
    pub(super) fn generate(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        outer: bool,
        input: Plan,
        span: Span,
    ) -> Fallible<(Plan, Vec<ColumnId>, Vec<String>)> {
        let name = name.to_ascii_lowercase();
        let (name, outer) = match name.strip_suffix("_outer") {
            Some(base) if ssql_stdlib::function_kind(&name).is_none() => (base.to_string(), true),
            _ => (name, outer),
        };
        if ssql_stdlib::function_kind(&name) != Some(FunctionKind::Generator) {
            return fail_help(
                "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
                format!("`{name}` is no function that makes rows"),
                span,
                "explode, posexplode, inline and stack do; TUMBLE, HOP and SESSION take TABLE s.",
            );
        }
        let types: Vec<ArgType> = args.iter().map(arg_type).collect();
        let (resolved, fields) = match ssql_stdlib::resolve_generator(&name, &types) {
            Ok(r) => r,
            Err(e) => return Err(resolve_error(e, &args, span)),
        };
        let mut outputs = vec![];
        let mut names = vec![];
        for field in fields {
            outputs.push(self.columns.add(&field.name, field.data_type, field.nullable || outer));
            names.push(field.name);
        }
        let args = cast_args(args, &resolved.arg_types);
        let node = Node::Generate { generator: resolved.function, args, outputs: outputs.clone(), outer };
        Ok((Plan::over(node, input, span), outputs, names))
    }

    /// `LATERAL VIEW [OUTER] generator(...) t AS a, b`.
    pub(super) fn bind_lateral_view(
        &mut self,
        rel: Rel,
        view: &'a sql::LateralView,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let span = self.span(&view.lateral_view);
        let sql::Expr::Function(f) = &view.lateral_view else {
            return fail("PARSE_SYNTAX_ERROR", "LATERAL VIEW takes a call of a generator", span);
        };
        let name = super::function::function_name(f);
        let env = Env { outer, ..Env::new(&rel.scope, Clause::Other) };
        let mut args = vec![];
        for e in self.argument_asts(&name, f, span)? {
            args.push(self.bind_expr(e, &env)?);
        }
        let (plan, ids, mut names) = self.generate(&name, args, view.outer, rel.plan, span)?;
        if !view.lateral_col_alias.is_empty() {
            if view.lateral_col_alias.len() != ids.len() {
                return fail(
                    "UDTF_ALIAS_NUMBER_MISMATCH",
                    format!(
                        "`{name}` makes {} columns, but {} names are given",
                        ids.len(),
                        view.lateral_col_alias.len()
                    ),
                    span,
                );
            }
            names = view.lateral_col_alias.iter().map(|i| i.value.clone()).collect();
        }
        let qualifier = object_name(&view.lateral_view_name);
        let mut scope = rel.scope;
        for (id, column) in ids.into_iter().zip(names) {
            scope.add(Some(&qualifier), column, id);
        }
        Ok(Rel { plan, scope })
    }
}

/// A name with dots.
pub(super) fn object_name(name: &sql::ObjectName) -> String {
    let parts: Vec<String> = name
        .0
        .iter()
        .map(|p| match p {
            sql::ObjectNamePart::Identifier(i) => i.value.clone(),
            sql::ObjectNamePart::Function(f) => f.to_string(),
        })
        .collect();
    parts.join(".")
}

fn factor_alias(factor: &TableFactor) -> Option<&sql::TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Pivot { alias, .. }
        | TableFactor::Unpivot { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

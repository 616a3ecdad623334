//! SELECT: from FROM to ORDER BY, in the order in which the clauses act.

use std::cell::RefCell;

use ssql_grammar::sql::{self, Distinct, SelectItem, SelectItemQualifiedWildcardKind};
use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{Expr, ExprKind, JoinKind};
use ssql_stdlib::FunctionKind;

use super::grouping::GroupingIds;
use super::{AggSink, Alias, Binder, Clause, Env, GroupWindow, PendingAnalytic, PendingJoin, Rel, Scope, ScopeColumn};
use crate::catalog::{join_quoted, suggest};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{ColumnId, ColumnInfo, DedupKind, Node, OrderKey, Plan, WindowEnd, WindowRef};

/// An item of the SELECT list: its name, and its value over the columns below the projection.
struct Item {
    name: String,
    expr: Expr,
}

impl<'a> Binder<'a> {
    pub(super) fn bind_select(
        &mut self,
        select: &'a sql::Select,
        order_by: Option<&'a sql::OrderBy>,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let span = self.span(select);
        self.refuse_foreign_clauses(select, span)?;
        let windows = std::mem::replace(&mut self.windows, &select.named_window);
        let result = self.bind_select_inner(select, order_by, span, outer);
        self.windows = windows;
        result
    }

    fn refuse_foreign_clauses(&self, select: &sql::Select, span: Span) -> Fallible<()> {
        for (clause, present) in [
            ("TOP", select.top.is_some()),
            ("INTO", select.into.is_some()),
            ("PREWHERE", select.prewhere.is_some()),
            ("CONNECT BY", !select.connect_by.is_empty()),
            ("CLUSTER BY", !select.cluster_by.is_empty()),
            ("DISTRIBUTE BY", !select.distribute_by.is_empty()),
            ("SORT BY", !select.sort_by.is_empty()),
            ("SELECT AS", select.value_table_mode.is_some()),
            ("EXCLUDE", select.exclude.is_some()),
        ] {
            if present {
                let help = match clause {
                    "TOP" => "Write LIMIT at the end of the query.",
                    "INTO" => "Write INSERT INTO target SELECT ...",
                    "EXCLUDE" => "Write SELECT * EXCEPT (column, ...).",
                    "CLUSTER BY" | "DISTRIBUTE BY" | "SORT BY" => "Leave it out, or write ORDER BY.",
                    _ => "Leave it out.",
                };
                return fail_help("UNSUPPORTED_FEATURE", format!("{clause} is not part of this dialect"), span, help);
            }
        }
        Ok(())
    }

    fn bind_select_inner(
        &mut self,
        select: &'a sql::Select,
        order_by: Option<&'a sql::OrderBy>,
        span: Span,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let mut rel = self.bind_from(&select.from, span, outer)?;
        for view in &select.lateral_views {
            rel = self.bind_lateral_view(rel, view, outer)?;
        }
        let Rel { mut plan, scope } = rel;
        if let Some(condition) = &select.selection {
            match self.bind_where(plan.clone(), &scope, condition, outer) {
                Ok(filtered) => plan = filtered,
                Err(d) => {
                    self.report::<()>(Err(d));
                }
            }
        }

        let window: RefCell<Option<GroupWindow>> = RefCell::new(scope.session.as_ref().map(|s| GroupWindow {
            start: s.start,
            end: WindowEnd::Column(s.end),
            session: true,
            definition: None,
            span: s.span,
        }));
        let (aggs, analytics) = (AggSink::default(), RefCell::new(Vec::<PendingAnalytic>::new()));
        let (joins, input_joins) = (RefCell::new(vec![]), RefCell::new(vec![]));
        let base = Env { outer, window: Some(&window), ..Env::new(&scope, Clause::Select) };

        let group_env = Env { clause: Clause::GroupBy, joins: Some(&input_joins), ..base };
        let grouped = self.bind_group_by(select, &group_env);
        let mut groups = self.report(grouped).flatten();
        let grouping = groups.as_ref().filter(|g| g.sets.is_some()).map(|g| GroupingIds {
            keys: g.keys.clone(),
            id: self.columns.add("grouping_id", ssql_ir::DataType::Int64, false),
        });
        let env = Env {
            aggs: Some(&aggs),
            analytics: Some(&analytics),
            joins: Some(&joins),
            input_joins: Some(&input_joins),
            grouping: grouping.as_ref(),
            ..base
        };
        let mut aliases: Vec<Alias> = vec![];
        let (mut items, mut generators) = self.bind_items(&select.projection, &env, &mut aliases);
        let outputs: Vec<Alias> = items.iter().map(|i| Alias { name: i.name.clone(), expr: i.expr.clone() }).collect();

        let named = Env { aliases: &aliases, alias_first: true, ..env };
        let mut having = None;
        if let Some(e) = &select.having {
            let bound = self.bind_predicate(e, &Env { clause: Clause::Having, analytics: None, ..named });
            having = self.report(bound);
        }
        let mut qualify = None;
        if let Some(e) = &select.qualify {
            let bound = self.bind_predicate(e, &Env { clause: Clause::Qualify, ..named });
            qualify = self.report(bound);
        }
        let mut distinct_on = vec![];
        if let Some(Distinct::On(keys)) = &select.distinct {
            for key in keys {
                let bound = self.bind_expr(key, &Env { aliases: &aliases, ..env });
                distinct_on.extend(self.report(bound));
            }
        }
        let order_env = Env { clause: Clause::OrderBy, aliases: &outputs, ..named };
        let mut order = self.bind_order(order_by, &outputs, &order_env);
        if !self.errors.is_empty() {
            // What follows would only repeat the mistakes.
            return Err(Box::new(self.errors.pop().expect("there is one")));
        }

        plan = self.apply_joins(plan, input_joins.into_inner());
        let used_window = window.into_inner();
        if let Some(w) = &used_window {
            plan = self.assign_window(plan, w);
        }
        let aggs = aggs.into_inner();
        let mut analytics = analytics.into_inner();
        let mut joins: Vec<PendingJoin> = joins.into_inner();
        let aggregated = groups.is_some() || !aggs.is_empty() || (having.is_some() && analytics.is_empty());
        if aggregated {
            let grouped = groups.is_some();
            let mut keys = groups.take().unwrap_or_default();
            if keys.all {
                let calls: Vec<ColumnId> =
                    aggs.iter().map(|(id, _)| *id).chain(analytics.iter().map(|a| a.id)).collect();
                let exprs: Vec<Expr> = items.iter().map(|i| i.expr.clone()).collect();
                self.group_by_all(&mut keys, &exprs, &calls);
            }
            let input = plan.outputs();
            let (p, map) = self.group(plan, &keys, aggs, used_window.as_ref(), grouping.as_ref(), span)?;
            plan = p;
            let exprs = items
                .iter_mut()
                .map(|i| &mut i.expr)
                .chain(having.iter_mut())
                .chain(qualify.iter_mut())
                .chain(distinct_on.iter_mut())
                .chain(order.iter_mut().map(|k| &mut k.expr))
                .chain(joins.iter_mut().filter_map(|j| j.on.as_mut()))
                .chain(analytics.iter_mut().flat_map(analytic_exprs))
                .chain(generators.iter_mut().flat_map(generator_exprs));
            let mut first = None;
            for e in exprs {
                if let Err(d) = self.over_groups(e, &map, &input, grouped)
                    && first.is_none()
                {
                    first = Some(d);
                }
            }
            if let Some(d) = first {
                return Err(d);
            }
        }
        plan = self.apply_joins(plan, joins);
        if let Some(predicate) = having {
            plan = plan.filter(predicate, span);
        }
        plan = analytic_nodes(plan, analytics, span);
        if let Some(predicate) = qualify {
            plan = plan.filter(predicate, span);
        }
        for generator in generators {
            plan = Plan { inputs: vec![plan], ..generator };
        }
        if !distinct_on.is_empty() {
            plan = self.distinct_on(plan, distinct_on, select, span);
        }
        let distinct = matches!(select.distinct, Some(Distinct::Distinct));
        self.finish(plan, items, order, distinct, span)
    }

    /// Projection, DISTINCT and ORDER BY.
    fn finish(
        &mut self,
        plan: Plan,
        items: Vec<Item>,
        mut order: Vec<OrderKey>,
        distinct: bool,
        span: Span,
    ) -> Fallible<Rel> {
        let mut columns = vec![];
        let mut scope = Scope::default();
        let mut sources: Vec<(Expr, ColumnId)> = vec![];
        for item in items {
            let id = self.project_column(&item.name, &item.expr, &mut columns);
            scope.add(None, item.name, id);
            sources.push((item.expr, id));
        }
        for key in &mut order {
            if let Some((_, id)) = sources.iter().find(|(e, _)| *e == key.expr) {
                key.expr = self.columns.expr(*id);
                continue;
            }
            if distinct {
                let at = key.expr.origin.span.map(|(s, t)| Span::new(s, t)).unwrap_or(span);
                let names = join_quoted(scope.columns.iter().map(|c| c.name.as_str()));
                return fail_help(
                    "UNRESOLVED_COLUMN.WITH_SUGGESTION",
                    "a SELECT DISTINCT can be ordered by what it selects only",
                    at,
                    format!("Order by one of: {names}."),
                );
            }
            let id = self.columns.add("order", key.expr.data_type.clone(), key.expr.nullable);
            columns.push((id, key.expr.clone()));
            key.expr = self.columns.expr(id);
        }
        let mut plan = Plan::over(Node::Project { columns }, plan, span);
        if distinct {
            let keys = self.dedup_keys(scope.columns.iter().map(|c| c.id).collect());
            plan = Plan::over(Node::Dedup { keys, kind: DedupKind::Distinct }, plan, span);
        }
        Ok(Rel { plan: super::query::sorted(plan, order, span), scope })
    }

    /// A column with that value; a window brings the columns that it was put together from.
    pub(super) fn project_column(&mut self, name: &str, e: &Expr, columns: &mut Vec<(ColumnId, Expr)>) -> ColumnId {
        let window = self.window_ref(e).map(|w| {
            let mut copy = |b: &mut Self, from: ColumnId| -> ColumnId {
                let info = ColumnInfo { window: None, ..b.columns.get(from).clone() };
                let id = b.columns.push(info);
                columns.push((id, b.columns.expr(from)));
                id
            };
            let start = copy(self, w.start);
            let end = match w.end {
                WindowEnd::Size(size) => WindowEnd::Size(size),
                WindowEnd::Column(c) => WindowEnd::Column(copy(self, c)),
            };
            WindowRef { start, end }
        });
        let event_time = if window.is_some() { None } else { self.event_time_of(e) };
        let window_edge = matches!(e.kind, ExprKind::Column(c) if self.columns.get(c).window_edge);
        let id = self.columns.push(ColumnInfo {
            name: name.to_string(),
            data_type: e.data_type.clone(),
            nullable: e.nullable,
            event_time,
            window,
            window_edge,
        });
        columns.push((id, e.clone()));
        id
    }

    /// Key columns of a deduplication: a window counts by its parts.
    pub(super) fn dedup_keys(&self, ids: Vec<ColumnId>) -> Vec<ColumnId> {
        let mut keys = vec![];
        for id in ids {
            match self.columns.get(id).window {
                Some(WindowRef { start, end: WindowEnd::Size(_) }) => keys.push(start),
                Some(WindowRef { start, end: WindowEnd::Column(end) }) => keys.extend([start, end]),
                None => keys.push(id),
            }
        }
        keys
    }

    fn distinct_on(&mut self, mut plan: Plan, keys: Vec<Expr>, select: &'a sql::Select, span: Span) -> Plan {
        let mut ids = vec![];
        for key in keys {
            if let Some(w) = self.window_ref(&key) {
                ids.push(w.start);
                if let WindowEnd::Column(end) = w.end {
                    ids.push(end);
                }
                continue;
            }
            let (p, id) = self.as_column(plan, key, span);
            plan = p;
            ids.push(id);
        }
        let within = self.clauses.within_watermark(select);
        let kind = if within.is_some() { DedupKind::WithinWatermark } else { DedupKind::On };
        Plan::over(Node::Dedup { keys: ids, kind }, plan, within.unwrap_or(span))
    }

    fn bind_order(&mut self, order_by: Option<&'a sql::OrderBy>, outputs: &[Alias], env: &Env<'_>) -> Vec<OrderKey> {
        let mut keys = vec![];
        let Some(order_by) = order_by else { return keys };
        for (e, options) in super::query::order_items(order_by) {
            let Some(e) = e else {
                for output in outputs {
                    let key = self.order_key(output.expr.clone(), options, self.fragment);
                    keys.extend(self.report(key));
                }
                continue;
            };
            let bound = match self.ordinal(e, outputs.len(), "ORDER_BY_POS_OUT_OF_RANGE") {
                Ok(Some(i)) => Ok(outputs[i].expr.clone()),
                Ok(None) => self.bind_expr(e, env),
                Err(d) => Err(d),
            };
            let key = bound.and_then(|e2| self.order_key(e2, options, self.span(e)));
            keys.extend(self.report(key));
        }
        keys
    }

    fn bind_items(
        &mut self,
        projection: &'a [SelectItem],
        env: &Env<'_>,
        aliases: &mut Vec<Alias>,
    ) -> (Vec<Item>, Vec<Plan>) {
        let mut items = vec![];
        let mut generators = vec![];
        for item in projection {
            let bound = self.bind_item(item, env, aliases, &mut items, &mut generators);
            self.report(bound);
        }
        (items, generators)
    }

    fn bind_item(
        &mut self,
        item: &'a SelectItem,
        env: &Env<'_>,
        aliases: &mut Vec<Alias>,
        items: &mut Vec<Item>,
        generators: &mut Vec<Plan>,
    ) -> Fallible<()> {
        let (e, names): (&'a sql::Expr, Vec<&'a sql::Ident>) = match item {
            SelectItem::UnnamedExpr(e) => (e, vec![]),
            SelectItem::ExprWithAlias { expr, alias } => (expr, vec![alias]),
            SelectItem::ExprWithAliases { expr, aliases } => (expr, aliases.iter().collect()),
            SelectItem::Wildcard(options) => {
                let columns: Vec<ScopeColumn> = env.scope.star().cloned().collect();
                if columns.is_empty() {
                    return fail(
                        "INVALID_USAGE_OF_STAR_OR_REGEX",
                        "`*` stands for nothing without FROM",
                        self.span(item),
                    );
                }
                let columns = columns.into_iter().map(|c| (c.name, self.columns.expr(c.id))).collect();
                return self.star_items(columns, options, item, items);
            }
            SelectItem::QualifiedWildcard(kind, options) => {
                let columns = self.qualified_star(kind, item, env)?;
                return self.star_items(columns, options, item, items);
            }
        };
        let inner = Env { aliases: aliases.as_slice(), ..*env };
        if let sql::Expr::Function(f) = e
            && f.over.is_none()
        {
            let name = super::function::function_name(f);
            let base = name.strip_suffix("_outer").unwrap_or(&name);
            if ssql_stdlib::function_kind(base) == Some(FunctionKind::Generator)
                && self.catalog.function(&name).is_none()
            {
                return self.generator_item(&name, f, &names, &inner, items, generators);
            }
        }
        let expr = self.bind_expr(e, &inner)?;
        let name = match names.as_slice() {
            [] => super::expr::implicit_name(e).unwrap_or_else(|| e.to_string()),
            [one] => one.value.clone(),
            _ => {
                return fail("INVALID_SQL_SYNTAX.MULTI_ALIASES", "this item has one value, not many", self.span(e));
            }
        };
        if !names.is_empty() {
            aliases.push(Alias { name: name.clone(), expr: expr.clone() });
        }
        items.push(Item { name, expr });
        Ok(())
    }

    fn generator_item(
        &mut self,
        name: &str,
        f: &'a sql::Function,
        names: &[&'a sql::Ident],
        env: &Env<'_>,
        items: &mut Vec<Item>,
        generators: &mut Vec<Plan>,
    ) -> Fallible<()> {
        let span = self.span(f);
        let mut args = vec![];
        for e in self.argument_asts(name, f, span)? {
            args.push(self.bind_expr(e, env)?);
        }
        // Its input, the plan below the projection, is known only when all items are bound.
        let leaf = Plan::leaf(Node::Values { columns: vec![], rows: vec![] }, span);
        let (generator, ids, mut fields) = self.generate(name, args, false, leaf, span)?;
        if !names.is_empty() {
            if names.len() != ids.len() {
                return fail(
                    "UDTF_ALIAS_NUMBER_MISMATCH",
                    format!("`{name}` makes {} columns, but {} names are given", ids.len(), names.len()),
                    span,
                );
            }
            fields = names.iter().map(|n| n.value.clone()).collect();
        }
        for (id, field) in ids.into_iter().zip(fields) {
            items.push(Item { name: field, expr: self.columns.expr(id) });
        }
        generators.push(generator);
        Ok(())
    }

    /// `t.*` and `struct.*`.
    fn qualified_star(
        &mut self,
        kind: &'a SelectItemQualifiedWildcardKind,
        item: &'a SelectItem,
        env: &Env<'_>,
    ) -> Fallible<Vec<(String, Expr)>> {
        let span = self.span(item);
        let base = match kind {
            SelectItemQualifiedWildcardKind::ObjectName(name) => {
                let qualifier = super::from::object_name(name);
                let columns: Vec<(String, Expr)> = env
                    .scope
                    .columns
                    .iter()
                    .filter(|c| c.qualifier.as_ref().is_some_and(|q| super::names::same(q, &qualifier)))
                    .map(|c| (c.name.clone(), self.columns.expr(c.id)))
                    .collect();
                if !columns.is_empty() {
                    return Ok(columns);
                }
                let parts: Vec<&sql::Ident> = name
                    .0
                    .iter()
                    .filter_map(|p| match p {
                        sql::ObjectNamePart::Identifier(i) => Some(i),
                        sql::ObjectNamePart::Function(_) => None,
                    })
                    .collect();
                match self.bind_name(&parts, span, env) {
                    Ok(e) => e,
                    Err(_) => {
                        let known = env.scope.columns.iter().filter_map(|c| c.qualifier.as_deref());
                        let d = Diagnostic::error(
                            "CANNOT_RESOLVE_STAR_EXPAND",
                            format!("`{qualifier}.*` names no relation and no struct of this query"),
                        )
                        .at(span);
                        return Err(Box::new(match suggest(&qualifier, known) {
                            Some(near) => d.with_help(format!("Did you mean `{near}.*`?")),
                            None => d,
                        }));
                    }
                }
            }
            SelectItemQualifiedWildcardKind::Expr(e) => self.bind_expr(e, env)?,
        };
        let fields: Vec<String> = match &base.data_type {
            ssql_ir::DataType::Struct(fields) => fields.iter().map(|f| f.name.clone()).collect(),
            other => {
                return fail(
                    "CANNOT_RESOLVE_STAR_EXPAND",
                    format!("`.*` takes the fields of a STRUCT, not of {other}"),
                    span,
                );
            }
        };
        let mut out = vec![];
        for field in fields {
            let value = self.field(base.clone(), &field, span)?;
            out.push((field, value));
        }
        Ok(out)
    }

    /// The columns of a star, less those of EXCEPT.
    fn star_items(
        &mut self,
        columns: Vec<(String, Expr)>,
        options: &sql::WildcardAdditionalOptions,
        item: &'a SelectItem,
        items: &mut Vec<Item>,
    ) -> Fallible<()> {
        let span = self.span(item);
        if options.opt_ilike.is_some() || options.opt_replace.is_some() || options.opt_rename.is_some() {
            return self.not_in_dialect("ILIKE, REPLACE or RENAME after `*`", span);
        }
        let mut except: Vec<String> = vec![];
        if let Some(e) = &options.opt_except {
            except.push(e.first_element.value.clone());
            except.extend(e.additional_elements.iter().map(|i| i.value.clone()));
        }
        match &options.opt_exclude {
            Some(sql::ExcludeSelectItem::Single(n)) => except.push(super::from::object_name(n)),
            Some(sql::ExcludeSelectItem::Multiple(ns)) => except.extend(ns.iter().map(super::from::object_name)),
            None => {}
        }
        for name in &except {
            if !columns.iter().any(|(c, _)| super::names::same(c, name)) {
                let known = || columns.iter().map(|(c, _)| c.as_str());
                let help = match suggest(name, known()) {
                    Some(near) => format!("Did you mean `{near}`?"),
                    None => format!("Columns here: {}.", join_quoted(known())),
                };
                let message = format!("EXCEPT names `{name}`, which is no column of `*`");
                return fail_help("UNRESOLVED_COLUMN.WITH_SUGGESTION", message, span, help);
            }
        }
        for (name, expr) in columns {
            if !except.iter().any(|e| super::names::same(e, &name)) {
                items.push(Item { name, expr });
            }
        }
        Ok(())
    }

    /// The plan with the joins that subqueries asked for.
    pub(super) fn apply_joins(&mut self, mut plan: Plan, joins: Vec<PendingJoin>) -> Plan {
        for j in joins {
            let node = Node::Join { kind: j.kind, on: j.on, flag: j.flag };
            if j.kind == JoinKind::Left {
                j.plan.outputs().iter().for_each(|id| self.columns.get_mut(*id).nullable = true);
            }
            plan = Plan::join(node, plan, j.plan, j.span);
        }
        plan
    }
}

fn generator_exprs(plan: &mut Plan) -> impl Iterator<Item = &mut Expr> {
    match &mut plan.node {
        Node::Generate { args, .. } => args.iter_mut(),
        _ => [].iter_mut(),
    }
}

fn analytic_exprs(a: &mut PendingAnalytic) -> Vec<&mut Expr> {
    let call = &mut a.call.call;
    call.args
        .iter_mut()
        .chain(call.filter.iter_mut())
        .chain(a.partition.iter_mut())
        .chain(a.order.iter_mut().map(|k| &mut k.expr))
        .collect()
}

/// One operator per partitioning and order.
fn analytic_nodes(mut plan: Plan, analytics: Vec<PendingAnalytic>, span: Span) -> Plan {
    let mut groups: Vec<Vec<PendingAnalytic>> = vec![];
    for a in analytics {
        match groups.iter_mut().find(|g| g[0].partition == a.partition && g[0].order == a.order) {
            Some(group) => group.push(a),
            None => groups.push(vec![a]),
        }
    }
    for group in groups {
        let at = group.first().map_or(span, |a| a.call.call.span);
        let (partition, order) = (group[0].partition.clone(), group[0].order.clone());
        let calls = group.into_iter().map(|a| (a.id, a.call)).collect();
        plan = Plan::over(Node::WindowFunction { partition, order, calls }, plan, at);
    }
    plan
}

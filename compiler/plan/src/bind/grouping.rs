//! GROUP BY: expressions, ordinals, aliases, ALL, grouping sets; and the grouping operator itself.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, GroupByExpr, GroupByWithModifier};
use ssql_ir::{DataType, Expr, ExprKind, Literal};

use super::operators::bigint;
use super::{Binder, Clause, Env, GroupWindow, origin_at};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{AggExpr, ColumnId, Node, Plan, WindowEnd, WindowRef};

/// Keys of the grouping sets and the column that tells which set a row belongs to.
pub(crate) struct GroupingIds {
    pub keys: Vec<Expr>,
    pub id: ColumnId,
}

/// A bound GROUP BY.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    /// Distinct keys over the input.
    pub keys: Vec<Expr>,
    /// Keys of each grouping set; None: one set of all.
    pub sets: Option<Vec<Vec<usize>>>,
    /// GROUP BY ALL: the keys are the select items without aggregates.
    pub all: bool,
}

impl Groups {
    fn key(&mut self, e: Expr) -> usize {
        match self.keys.iter().position(|k| *k == e) {
            Some(i) => i,
            None => {
                self.keys.push(e);
                self.keys.len() - 1
            }
        }
    }
}

/// More sets than this are refused (a CUBE of 12 keys).
const MAX_SETS: usize = 4096;

impl<'a> Binder<'a> {
    /// The keys; None when there is no GROUP BY.
    pub(super) fn bind_group_by(&mut self, select: &'a sql::Select, env: &Env<'_>) -> Fallible<Option<Groups>> {
        let (exprs, modifiers) = match &select.group_by {
            GroupByExpr::All(modifiers) => {
                if let Some(m) = modifiers.first() {
                    return self.not_in_dialect(&format!("GROUP BY ALL {m}"), self.span(select));
                }
                return Ok(Some(Groups { all: true, ..Groups::default() }));
            }
            GroupByExpr::Expressions(exprs, modifiers) => (exprs, modifiers),
        };
        if exprs.is_empty() && modifiers.is_empty() {
            return Ok(None);
        }
        if let ([sql::Expr::Identifier(i)], []) = (exprs.as_slice(), modifiers.as_slice())
            && i.quote_style.is_none()
            && i.value.eq_ignore_ascii_case("all")
            && !env.scope.columns.iter().any(|c| c.name.eq_ignore_ascii_case("all"))
        {
            return Ok(Some(Groups { all: true, ..Groups::default() }));
        }
        let mut groups = Groups::default();
        // Sets of key numbers, the cross product of what each element of GROUP BY gives.
        let mut sets: Vec<Vec<usize>> = vec![vec![]];
        let mut grouping = false;
        for e in exprs {
            let alternatives = match self.grouping_element(e, &mut groups, select, env)? {
                Some(alternatives) => {
                    grouping = true;
                    alternatives
                }
                None => vec![self.plain_keys(e, &mut groups, select, env)?],
            };
            sets = cross(&sets, &alternatives);
            if sets.len() > MAX_SETS {
                return fail("GROUPING_SIZE_LIMIT_EXCEEDED", "these are too many grouping sets", self.span(e));
            }
        }
        for m in modifiers {
            grouping = true;
            let all: Vec<Vec<usize>> = sets.concat().into_iter().map(|i| vec![i]).collect();
            sets = match m {
                GroupByWithModifier::Rollup => rollup(&all),
                GroupByWithModifier::Cube => cube(&all),
                GroupByWithModifier::GroupingSets(e) => match self.grouping_element(e, &mut groups, select, env)? {
                    Some(sets) => sets,
                    None => return self.not_in_dialect("this GROUPING SETS", self.span(e)),
                },
                GroupByWithModifier::Totals => return self.not_in_dialect("WITH TOTALS", self.span(select)),
            };
        }
        groups.sets = grouping.then_some(sets);
        Ok(Some(groups))
    }

    fn grouping_element(
        &mut self,
        e: &'a sql::Expr,
        groups: &mut Groups,
        select: &'a sql::Select,
        env: &Env<'_>,
    ) -> Fallible<Option<Vec<Vec<usize>>>> {
        let mut bind = |b: &mut Self, lists: &'a [Vec<sql::Expr>]| -> Fallible<Vec<Vec<usize>>> {
            let mut out = vec![];
            for list in lists {
                let mut keys = vec![];
                for e in list {
                    keys.extend(b.plain_keys(e, groups, select, env)?);
                }
                out.push(keys);
            }
            Ok(out)
        };
        Ok(Some(match e {
            sql::Expr::Rollup(lists) => rollup(&bind(self, lists)?),
            sql::Expr::Cube(lists) => cube(&bind(self, lists)?),
            sql::Expr::GroupingSets(lists) => bind(self, lists)?,
            sql::Expr::Function(f) => {
                let name = super::function::function_name(f);
                if name != "rollup" && name != "cube" {
                    return Ok(None);
                }
                let mut lists = vec![];
                for arg in self.argument_asts(&name, f, self.span(e))? {
                    let mut keys = vec![];
                    let parts: Vec<&'a sql::Expr> = match arg {
                        sql::Expr::Tuple(items) => items.iter().collect(),
                        other => vec![other],
                    };
                    for part in parts {
                        keys.extend(self.plain_keys(part, groups, select, env)?);
                    }
                    lists.push(keys);
                }
                if name == "rollup" { rollup(&lists) } else { cube(&lists) }
            }
            _ => return Ok(None),
        }))
    }

    /// Numbers of the keys that one expression gives: more than one for a window.
    fn plain_keys(
        &mut self,
        e: &'a sql::Expr,
        groups: &mut Groups,
        select: &'a sql::Select,
        env: &Env<'_>,
    ) -> Fallible<Vec<usize>> {
        let span = self.span(e);
        let items = &select.projection;
        if let sql::Expr::Tuple(parts) = e {
            let mut keys = vec![];
            for part in parts {
                keys.extend(self.plain_keys(part, groups, select, env)?);
            }
            return Ok(keys);
        }
        let bound = match self.ordinal(e, items.len(), "GROUP_BY_POS_OUT_OF_RANGE")? {
            Some(i) => {
                let Some(item) = item_expr(&items[i]) else {
                    return self.not_in_dialect("an ordinal for `*`", span);
                };
                self.bind_expr(item, env).map_err(|mut d| {
                    if d.condition == "GROUP_BY_AGGREGATE" {
                        d.condition = "GROUP_BY_POS_AGGREGATE".into();
                    }
                    d
                })?
            }
            None => match self.bind_expr(e, env) {
                Ok(bound) => bound,
                Err(d) => match alias_target(e, items).filter(|_| d.condition.starts_with("UNRESOLVED_COLUMN")) {
                    Some(item) => self.bind_expr(item, env)?,
                    None => return Err(d),
                },
            },
        };
        Ok(match self.window_ref(&bound) {
            Some(w) => {
                let mut keys = vec![groups.key(self.columns.expr(w.start).at(bound.origin))];
                if let WindowEnd::Column(end) = w.end {
                    keys.push(groups.key(self.columns.expr(end).at(bound.origin)));
                }
                keys
            }
            None => vec![groups.key(bound)],
        })
    }

    /// GROUP BY ALL: every item without an aggregate.
    pub(super) fn group_by_all(&mut self, groups: &mut Groups, items: &[Expr], calls: &[ColumnId]) {
        for item in items {
            let mut has_call = false;
            item.walk(&mut |e| has_call |= matches!(e.kind, ExprKind::Column(id) if calls.contains(&id)));
            if has_call || matches!(item.kind, ExprKind::Literal(_)) {
                continue;
            }
            match self.window_ref(item) {
                Some(w) => {
                    groups.key(self.columns.expr(w.start));
                    if let WindowEnd::Column(end) = w.end {
                        groups.key(self.columns.expr(end));
                    }
                }
                None => {
                    groups.key(item.clone());
                }
            }
        }
    }

    /// The grouping operator, and what stands above it for each key expression.
    pub(super) fn group(
        &mut self,
        mut plan: Plan,
        groups: &Groups,
        aggs: Vec<(ColumnId, AggExpr)>,
        window: Option<&GroupWindow>,
        grouping: Option<&GroupingIds>,
        span: Span,
    ) -> Fallible<(Plan, Vec<(Expr, Expr)>)> {
        let mut keys = groups.keys.clone();
        let mut map: Vec<(Expr, Expr)> = vec![];
        if let (Some(sets), Some(ids)) = (&groups.sets, grouping) {
            (plan, keys) = self.expand(plan, &groups.keys, sets, ids.id, span);
        }
        let mut outs: Vec<(ColumnId, Expr)> = vec![];
        for (i, key) in keys.iter().enumerate() {
            let name = match key.kind {
                ExprKind::Column(id) => self.columns.get(id).name.clone(),
                _ => format!("key{}", i + 1),
            };
            let id = self.columns.add(name, key.data_type.clone(), key.nullable);
            let edge = matches!(key.kind, ExprKind::Column(c) if self.columns.get(c).window_edge);
            let role = self.event_time_of(key);
            let info = self.columns.get_mut(id);
            info.window_edge = edge;
            info.event_time = role;
            if let Some(original) = groups.keys.get(i) {
                map.push((original.clone(), self.columns.expr(id)));
            }
            outs.push((id, key.clone()));
        }
        if let (Some(ids), Some((out, _))) = (grouping, outs.last()) {
            map.push((self.columns.expr(ids.id), self.columns.expr(*out)));
        }
        // A window struct of the input is put together anew from its grouped parts.
        for id in plan.outputs() {
            let Some(w) = self.columns.get(id).window else { continue };
            let of = |c: ColumnId| outs.iter().find(|(_, e)| e.kind == ExprKind::Column(c)).map(|(id, _)| *id);
            let end = match w.end {
                WindowEnd::Size(size) => Some(WindowEnd::Size(size)),
                WindowEnd::Column(c) => of(c).map(WindowEnd::Column),
            };
            if let (Some(start), Some(end)) = (of(w.start), end) {
                map.push((self.columns.expr(id), self.window_struct(start, end)));
            }
        }
        let session = window.filter(|w| w.session).map(|w| WindowRef { start: w.start, end: w.end });
        let node = match session {
            Some(WindowRef { start, end: WindowEnd::Column(end) }) => {
                let mut take = |c: ColumnId| {
                    let at = outs.iter().position(|(_, e)| e.kind == ExprKind::Column(c))?;
                    Some(outs.remove(at).0)
                };
                let (Some(out_start), Some(out_end)) = (take(start), take(end)) else {
                    return fail_help(
                        "UNSUPPORTED_FEATURE.SESSION_WINDOW",
                        "the session window is not grouped by",
                        window.map_or(span, |w| w.span),
                        "Group by SESSION(ts, gap), or by both window_start and window_end.",
                    );
                };
                if groups.sets.is_some() {
                    return self.not_in_dialect("a session window beside grouping sets", span);
                }
                Node::Session { start: (out_start, start), end: (out_end, end), keys: outs, aggs }
            }
            _ => Node::Aggregate { keys: outs, aggs },
        };
        Ok((Plan::over(node, plan, span), map))
    }

    /// A copy of each row per grouping set, the keys outside of the set NULL.
    fn expand(
        &mut self,
        plan: Plan,
        keys: &[Expr],
        sets: &[Vec<usize>],
        gid: ColumnId,
        span: Span,
    ) -> (Plan, Vec<Expr>) {
        let input = plan.outputs();
        let mut columns = input.clone();
        let mut new_keys = vec![];
        for key in keys {
            let id = self.columns.add("key", key.data_type.clone(), true);
            if let ExprKind::Column(c) = key.kind {
                let (name, role, edge) = {
                    let info = self.columns.get(c);
                    (info.name.clone(), info.event_time, info.window_edge)
                };
                let info = self.columns.get_mut(id);
                info.name = name;
                info.event_time = role;
                info.window_edge = edge;
            }
            columns.push(id);
            new_keys.push(self.columns.expr(id));
        }
        columns.push(gid);
        new_keys.push(self.columns.expr(gid));
        let projections = sets
            .iter()
            .map(|set| {
                let mut row: Vec<Expr> = input.iter().map(|id| self.columns.expr(*id)).collect();
                let mut bits = 0i64;
                for (i, key) in keys.iter().enumerate() {
                    let inside = set.contains(&i);
                    bits = (bits << 1) | i64::from(!inside);
                    row.push(match inside {
                        true => key.clone(),
                        false => Expr::literal(Literal::Null, key.data_type.clone()),
                    });
                }
                row.push(bigint(bits));
                row
            })
            .collect();
        (Plan::over(Node::Expand { columns, projections }, plan, span), new_keys)
    }

    /// `grouping(key)` and `grouping_id([keys])`.
    pub(super) fn bind_grouping(
        &mut self,
        name: &str,
        f: &'a sql::Function,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let Some(ids) = env.grouping else {
            return fail_help(
                "UNSUPPORTED_GROUPING_EXPRESSION",
                format!("`{name}` needs GROUPING SETS, ROLLUP or CUBE"),
                span,
                "Use it in a query with GROUP BY ROLLUP (...), CUBE (...) or GROUPING SETS (...).",
            );
        };
        let asts = self.argument_asts(name, f, span)?;
        let inner = Env { aggs: None, analytics: None, clause: Clause::GroupBy, ..*env };
        let mut bits = vec![];
        for e in asts {
            let key = self.bind_expr(e, &inner)?;
            match ids.keys.iter().position(|k| *k == key) {
                Some(i) => bits.push(ids.keys.len() - 1 - i),
                None => {
                    return fail(
                        "GROUPING_COLUMN_MISMATCH",
                        format!("the argument of `{name}` is not grouped by"),
                        self.span(e),
                    );
                }
            }
        }
        let gid = self.columns.expr(ids.id);
        if name == "grouping_id" && bits.is_empty() {
            return Ok(gid.at(origin_at(span)));
        }
        let bit = |b: &Self, n: usize| -> Fallible<Expr> {
            let n = Expr::literal(Literal::Int(n as i64), DataType::Int32);
            let shifted = b.call("shiftright", vec![gid.clone(), n], span)?;
            b.call("&", vec![shifted, bigint(1)], span)
        };
        if name == "grouping" {
            if bits.len() != 1 {
                return fail("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", "`grouping` takes one argument", span);
            }
            let value = bit(self, bits[0])?;
            return Ok(super::cast(value, &DataType::Int8, ssql_ir::CastMode::Ansi));
        }
        let mut value = bigint(0);
        for n in bits {
            let doubled = self.call("*", vec![value, bigint(2)], span)?;
            value = self.call("+", vec![doubled, bit(self, n)?], span)?;
        }
        Ok(value.at(origin_at(span)))
    }
}

/// The expression of a select item.
pub(super) fn item_expr(item: &sql::SelectItem) -> Option<&sql::Expr> {
    match item {
        sql::SelectItem::UnnamedExpr(e) => Some(e),
        sql::SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// The select item that a bare name stands for.
fn alias_target<'s>(e: &sql::Expr, items: &'s [sql::SelectItem]) -> Option<&'s sql::Expr> {
    let sql::Expr::Identifier(name) = e else { return None };
    items.iter().find_map(|item| match item {
        sql::SelectItem::ExprWithAlias { expr, alias } if super::names::same(&alias.value, &name.value) => Some(expr),
        _ => None,
    })
}

fn cross(a: &[Vec<usize>], b: &[Vec<usize>]) -> Vec<Vec<usize>> {
    a.iter().flat_map(|x| b.iter().map(move |y| [x.clone(), y.clone()].concat())).collect()
}

fn rollup(lists: &[Vec<usize>]) -> Vec<Vec<usize>> {
    (0..=lists.len()).rev().map(|n| lists[..n].concat()).collect()
}

fn cube(lists: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut sets = vec![vec![]];
    for list in lists {
        let without: Vec<Vec<usize>> = sets.clone();
        sets = sets.into_iter().map(|s| [s, list.clone()].concat()).chain(without).collect();
        if sets.len() > MAX_SETS {
            break;
        }
    }
    sets
}

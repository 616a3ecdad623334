//! Joins: kinds, ON, USING, NATURAL, LATERAL.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, JoinConstraint, JoinOperator, TableFactor};
use ssql_ir::{DataType, Expr, JoinKind, Literal};

use super::operators::and;
use super::{Binder, Clause, Env, Rel, Scope, ScopeColumn};
use crate::catalog::{join_quoted, suggest};
use crate::diag::{Fallible, fail_help};
use crate::logical::{Node, Plan};

impl<'a> Binder<'a> {
    /// `left, factor`.
    pub(super) fn bind_comma_join(
        &mut self,
        left: Rel,
        factor: &'a TableFactor,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Rel> {
        let span = self.span(factor);
        let right = self.bind_factor(factor, Some(&left.scope), outer)?;
        self.join(left, right, JoinKind::Inner, None, span, is_lateral(factor))
    }

    pub(super) fn bind_join(&mut self, left: Rel, join: &'a sql::Join, outer: Option<&Env<'_>>) -> Fallible<Rel> {
        use JoinOperator as J;
        let span = self.span(&join.relation);
        let none = &JoinConstraint::None;
        // RIGHT SEMI and RIGHT ANTI do not exist in Spark; the rest maps one to one.
        let (kind, constraint) = match &join.join_operator {
            J::Join(c) | J::Inner(c) => (JoinKind::Inner, c),
            J::CrossJoin(c) => (JoinKind::Inner, c),
            J::Left(c) | J::LeftOuter(c) => (JoinKind::Left, c),
            J::Right(c) | J::RightOuter(c) => (JoinKind::Right, c),
            J::FullOuter(c) => (JoinKind::Full, c),
            J::Semi(c) | J::LeftSemi(c) => (JoinKind::LeftSemi, c),
            J::Anti(c) | J::LeftAnti(c) => (JoinKind::LeftAnti, c),
            J::CrossApply => (JoinKind::Inner, none),
            J::OuterApply => (JoinKind::Left, none),
            other => {
                return self
                    .not_in_dialect(&format!("this join ({other:?})").chars().take(60).collect::<String>(), span);
            }
        };
        let right = self.bind_factor(&join.relation, Some(&left.scope), outer)?;
        self.bind_join_of(left, right, kind, constraint, span, outer, is_lateral(&join.relation))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one syntax node")]
    fn bind_join_of(
        &mut self,
        left: Rel,
        right: Rel,
        kind: JoinKind,
        constraint: &'a JoinConstraint,
        span: Span,
        outer: Option<&Env<'_>>,
        lateral: bool,
    ) -> Fallible<Rel> {
        let names: Vec<String> = match constraint {
            JoinConstraint::None => return self.join(left, right, kind, None, span, lateral),
            JoinConstraint::On(e) => {
                let mut both = left.scope.clone();
                both.columns.extend(right.scope.columns.iter().cloned());
                let env = Env { outer, ..Env::new(&both, Clause::On) };
                let at = self.span(e);
                let on = self.bind_expr(e, &env);
                let on =
                    on.and_then(|on| self.to_boolean(on, "a join condition", "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", at));
                // With a mistake in ON the rest of the query can still be judged.
                let judged = || Expr::literal(Literal::Boolean(true), DataType::Boolean);
                let on = self.report(on).unwrap_or_else(judged);
                return self.join(left, right, kind, Some(on), span, lateral);
            }
            JoinConstraint::Using(names) => names.iter().map(super::from::object_name).collect(),
            JoinConstraint::UsingAlias(..) => return self.not_in_dialect("USING (...) AS", span),
            JoinConstraint::Natural => left
                .scope
                .star()
                .filter(|l| right.scope.star().any(|r| super::names::same(&l.name, &r.name)))
                .map(|l| l.name.clone())
                .collect(),
        };
        self.join_using(left, right, kind, &names, span)
    }

    /// JOIN ... USING: each named column appears once, first.
    fn join_using(&mut self, left: Rel, right: Rel, kind: JoinKind, names: &[String], span: Span) -> Fallible<Rel> {
        let mut on: Option<Expr> = None;
        let mut pairs = vec![];
        for name in names {
            let l = self.using_column(&left.scope, name, span)?;
            let r = self.using_column(&right.scope, name, span)?;
            let equal = self.equal("=", self.columns.expr(l.id), self.columns.expr(r.id), span)?;
            on = Some(match on {
                Some(a) => and(a, equal),
                None => equal,
            });
            pairs.push((l, r));
        }
        let (left_scope, right_scope) = (left.scope.clone(), right.scope.clone());
        let mut rel = self.join(left, right, kind, on, span, false)?;
        if matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti) {
            return Ok(rel);
        }
        let mut scope = Scope::default();
        let mut more = vec![];
        for (l, r) in &pairs {
            let id = match kind {
                JoinKind::Right => r.id,
                JoinKind::Full => {
                    let values = vec![self.columns.expr(l.id), self.columns.expr(r.id)];
                    let merged = self.coalesce(values, "USING", span)?;
                    let id = self.columns.add(&l.name, merged.data_type.clone(), merged.nullable);
                    more.push((id, merged));
                    id
                }
                _ => l.id,
            };
            scope.add(None, &l.name, id);
        }
        rel.plan = self.extend(rel.plan, more, span);
        for column in left_scope.columns.into_iter().chain(right_scope.columns) {
            let merged = names.iter().any(|n| super::names::same(n, &column.name)) && column.bare;
            scope.columns.push(ScopeColumn { star: column.star && !merged, bare: column.bare && !merged, ..column });
        }
        rel.scope = scope;
        Ok(rel)
    }

    fn using_column(&self, scope: &Scope, name: &str, span: Span) -> Fallible<ScopeColumn> {
        let found = scope.columns.iter().find(|c| c.bare && super::names::same(&c.name, name));
        match found {
            Some(column) => Ok(column.clone()),
            None => {
                let known = || scope.star().map(|c| c.name.as_str());
                let help = match suggest(name, known()) {
                    Some(near) => format!("Did you mean `{near}`?"),
                    None => format!("Its columns are: {}.", join_quoted(known())),
                };
                fail_help(
                    "UNRESOLVED_USING_COLUMN_FOR_JOIN",
                    format!("one side of the join has no column `{name}`"),
                    span,
                    help,
                )
            }
        }
    }

    fn join(
        &mut self,
        left: Rel,
        right: Rel,
        kind: JoinKind,
        on: Option<Expr>,
        span: Span,
        lateral: bool,
    ) -> Fallible<Rel> {
        let (left_out, right_out) = (left.plan.outputs(), right.plan.outputs());
        let (right_plan, on) = if lateral {
            let (plan, pulled) = self.decorrelate(right.plan, &left_out, span)?;
            (plan, crate::logical::conjunction(on.into_iter().chain(pulled)))
        } else {
            (right.plan, on)
        };
        let plan = Plan::join(Node::Join { kind, on, flag: None }, left.plan, right_plan, span);
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            right_out.iter().for_each(|id| self.columns.get_mut(*id).nullable = true);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            left_out.iter().for_each(|id| self.columns.get_mut(*id).nullable = true);
        }
        let mut scope = left.scope;
        if !matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti) {
            scope.columns.extend(right.scope.columns);
            scope.session = scope.session.or(right.scope.session);
        }
        Ok(Rel { plan, scope })
    }
}

fn is_lateral(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { lateral: true, .. } | TableFactor::Function { lateral: true, .. })
}

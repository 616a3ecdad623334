//! Constant folding: what reads no column and gives the same each time becomes a literal. An expression that fails is
//! left as it is, so that its error is raised where (and only if) the row needs it.

use ssql_ir::{Expr, ExprKind, Literal};
use ssql_stdlib::EvalContext;

use crate::catalog::Catalog;
use crate::logical::{Plan, Query};

pub(crate) fn run(query: &mut Query, catalog: &Catalog) {
    let context = context(catalog);
    fold_plan(&mut query.plan, &context);
    for (plan, _) in &mut query.subqueries {
        fold_plan(plan, &context);
    }
}

fn fold_plan(plan: &mut Plan, context: &EvalContext) {
    plan.expressions_mut(&mut |e| fold_in(e, context));
    for input in &mut plan.inputs {
        fold_plan(input, context);
    }
}

fn context(catalog: &Catalog) -> EvalContext {
    EvalContext { time_zone: catalog.settings.time_zone(), natives: catalog.natives.clone(), ..EvalContext::default() }
}

/// The expression with its constant parts computed.
pub(crate) fn fold(mut e: Expr, catalog: &Catalog) -> Expr {
    fold_in(&mut e, &context(catalog));
    e
}

fn fold_in(e: &mut Expr, context: &EvalContext) {
    if matches!(e.kind, ExprKind::Literal(_)) {
        return;
    }
    // What `typeof` is given counts by its type only, and is never computed.
    if let ExprKind::Call { function, args } = &mut e.kind
        && &**function == "typeof"
    {
        for arg in args {
            *arg = Expr::literal(Literal::Null, arg.data_type.clone());
        }
    }
    // What cannot be NULL need not be computed to be asked for NULL (Spark's NullPropagation).
    if let ExprKind::Call { function, args } = &e.kind
        && matches!(&**function, "isnull" | "isnotnull")
        && args.first().is_some_and(|a| !a.nullable)
    {
        e.kind = ExprKind::Literal(Literal::Boolean(&**function == "isnotnull"));
        return;
    }
    if is_constant(e)
        && let Some(literal) = ssql_stdlib::fold_constant(e, context)
    {
        e.nullable = literal == Literal::Null;
        e.kind = ExprKind::Literal(literal);
        return;
    }
    for child in e.children_mut() {
        fold_in(child, context);
    }
}

fn is_constant(e: &Expr) -> bool {
    let mut constant = true;
    e.walk(&mut |x| match &x.kind {
        ExprKind::Column(_) | ExprKind::LambdaVariable(_) | ExprKind::ScalarSubquery(_) | ExprKind::Lambda { .. } => {
            constant = false;
        }
        ExprKind::Call { function, .. } if !ssql_stdlib::is_deterministic(function) => constant = false,
        _ => {}
    });
    constant
}

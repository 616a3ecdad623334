//! Rewrites of the logical plan, in one ordered list; [`fuse`] then works on the IR.

pub(crate) mod fold;
pub mod fuse;
pub(crate) mod prune;
pub(crate) mod push_filters;
pub(crate) mod slices;

use crate::catalog::Catalog;
use crate::logical::Query;

/// A rewrite of a query that keeps its answer.
pub(crate) type Pass = fn(&mut Query, &Catalog);

/// What runs before the streaming check: nothing that moves an operator.
pub(crate) const BEFORE_CHECK: &[Pass] = &[fold::run, prune::run];

/// What runs after it.
pub(crate) const AFTER_CHECK: &[Pass] = &[push_filters::run, prune::run, slices::run, prune::run];

/// Runs the passes in order.
pub(crate) fn run(passes: &[Pass], query: &mut Query, catalog: &Catalog) {
    for pass in passes {
        pass(query, catalog);
    }
}

//! Harness and test tiers over the whole workspace

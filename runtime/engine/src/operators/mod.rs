//! The operators over Arrow batches. Stateless ones are [`step::Step`]s, applied to each batch as it is read; the
//! others collect their whole input of a micro-batch first.

pub mod aggregate;
pub mod codec;
pub mod dedup;
pub mod groups;
pub mod hash_join;
pub mod hop;
pub mod keys;
pub mod map;
pub mod session;
pub mod sort;
pub mod step;
pub mod stream_join;
pub mod window_function;

//! JSON: schema-directed reading of records into columns, and writing.
//!
//! Reading goes from the bytes straight into the columns that are asked for. The order of members is predicted from the
//! records before, so that a name costs one comparison of 32 bytes; strings stay where they were read and become views.

mod decoder;
mod number;
mod scan;
mod time;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use decoder::{JsonDecoder, JsonOptions};
pub(crate) use value::{decimal, is_epoch};
pub use write::JsonWriter;

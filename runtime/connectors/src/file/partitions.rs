//! Columns whose values stand in directory names (`dt=2024-01-15/`), Hive's and Spark's convention.

use std::path::Path;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat;
use ssql_engine::connector::{ConnectorError, Domain};
use ssql_ir::Field;
use ssql_stdlib::arrow_type;

use crate::cells::cell_from_text;
use crate::columns::nullable_type;

/// How a directory says NULL, or the empty string.
pub(crate) const NULL_NAME: &str = "__HIVE_DEFAULT_PARTITION__";
/// Characters that cannot stand in a directory name, as Hive has them.
const ESCAPED: &str = "\"#%'*/:=?\\{[]^\u{7f}";

/// The (name, value) pairs in the directories of `path` below `root`.
pub(crate) fn values(root: &Path, path: &Path) -> Vec<(String, Option<String>)> {
    let Some(dirs) = path.strip_prefix(root).ok().and_then(Path::parent) else { return Vec::new() };
    dirs.components()
        .filter_map(|c| {
            let text = c.as_os_str().to_str()?;
            let (name, value) = text.split_once('=')?;
            let value = unescape(value);
            Some((unescape(name), (value != NULL_NAME).then_some(value)))
        })
        .collect()
}

/// One value of a partition column, as an array of that length.
pub(crate) fn array(
    field: &Field,
    value: Option<&str>,
    rows: usize,
    zone: &jiff::tz::TimeZone,
) -> Result<ArrayRef, ConnectorError> {
    let one = cell_from_text(&field.data_type, value, zone).ok_or_else(|| {
        let message = format!("directory `{}={}` is no {}", field.name, value.unwrap_or(NULL_NAME), field.data_type);
        ConnectorError::new("CAST_INVALID_INPUT", Domain::User, message)
            .with_help("declare the partition column as STRING, or mend the directory's name")
    })?;
    let indices = arrow::array::UInt32Array::from(vec![0u32; rows]);
    let array = arrow::compute::take(&one, &indices, None);
    let array = array.map_err(|e| ConnectorError::new("INTERNAL_ERROR", Domain::Internal, e.to_string()))?;
    debug_assert_eq!(array.data_type(), &arrow_type(&nullable_type(&field.data_type)));
    Ok(array)
}

/// Writes a name or value so that it can stand in a directory name.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c < ' ' || ESCAPED.contains(c) {
            out.push_str(&format!("%{:02X}", c as u32));
        } else {
            out.push(c);
        }
    }
    out
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Concatenates batches of one schema; a lone batch is not copied.
pub(crate) fn one_batch(batches: &[RecordBatch]) -> Result<RecordBatch, arrow::error::ArrowError> {
    match batches {
        [one] => Ok(one.clone()),
        many => {
            let schema =
                many.first().map_or_else(|| std::sync::Arc::new(arrow::datatypes::Schema::empty()), |b| b.schema());
            let rows = many.iter().map(RecordBatch::num_rows).sum();
            let columns = (0..schema.fields().len())
                .map(|c| concat(&many.iter().map(|b| b.column(c).as_ref()).collect::<Vec<_>>()))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(crate::decode::batch(&schema, columns, rows))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_names_are_escaped_as_spark_escapes_them() {
        assert_eq!(escape("x/y:z %=é"), "x%2Fy%3Az %25%3Dé");
        assert_eq!(unescape(&escape("x/y:z %=é")), "x/y:z %=é");
        assert_eq!(escape(".."), "..");
        let read = values(Path::new("/r"), Path::new("/r/a=1/b=__HIVE_DEFAULT_PARTITION__/plain/f.json"));
        assert_eq!(read, vec![("a".to_string(), Some("1".to_string())), ("b".to_string(), None)]);
        assert_eq!(unescape("100%"), "100%");
    }
}

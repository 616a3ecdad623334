//! Bytes of state records: little-endian integers, and byte strings with a length.

use ssql_abi::KeyKind;

/// Appends an optional byte string: length + 1 (0 for NULL) as a u32, then the bytes.
pub fn put_bytes(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        None => out.extend_from_slice(&0u32.to_le_bytes()),
        Some(bytes) => {
            out.extend_from_slice(&(bytes.len() as u32 + 1).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads what was put, and never past the end.
#[derive(Debug, Clone)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from the start.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// One byte; `None` at the end.
    pub fn u8(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Four bytes; `None` if they are not there.
    pub fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    /// Eight bytes; `None` if they are not there.
    pub fn i64(&mut self) -> Option<i64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(i64::from_le_bytes(*head))
    }

    /// An optional byte string; `None` if it is cut off, `Some(None)` for NULL.
    pub fn bytes(&mut self) -> Option<Option<&'a [u8]>> {
        let length = self.u32()? as usize;
        if length == 0 {
            return Some(None);
        }
        let (bytes, rest) = self.0.split_at_checked(length - 1)?;
        self.0 = rest;
        Some(Some(bytes))
    }
}

/// Reads the fields of a key, as [`put_bytes`] wrote each; what is wrong with them if they are not of these kinds.
pub fn read_key<'a>(kinds: &[KeyKind], input: &mut Reader<'a>) -> Result<Vec<Option<&'a [u8]>>, &'static str> {
    let field = |kind: &KeyKind| {
        let field = input.bytes().ok_or("a key is cut off")?;
        if field.is_some_and(|bytes| *kind != KeyKind::Bytes && bytes.len() != kind.width()) {
            return Err("a key has another width; was the query changed?");
        }
        Ok(field)
    };
    kinds.iter().map(field).collect()
}

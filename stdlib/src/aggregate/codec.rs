//! Reading and writing of aggregate state in changelogs and snapshots: little endian, self-delimiting.

use crate::error::DecodeError;

/// Writes a length or count: seven bits a byte, low bits first.
pub fn put_len(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Reads what [`put_len`] wrote.
pub fn get_len(input: &mut &[u8]) -> Result<usize, DecodeError> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first().ok_or_else(DecodeError::truncated)?;
        *input = rest;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return usize::try_from(n).map_err(|_| DecodeError("a length that does not fit".into()));
        }
    }
    Err(DecodeError("a length of too many bytes".into()))
}

/// Writes bytes with their length before them.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Reads what [`put_bytes`] wrote.
pub fn get_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let n = get_len(input)?;
    take(input, n)
}

/// Reads `n` bytes.
pub fn take<'a>(input: &mut &'a [u8], n: usize) -> Result<&'a [u8], DecodeError> {
    let (head, rest) = input.split_at_checked(n).ok_or_else(DecodeError::truncated)?;
    *input = rest;
    Ok(head)
}

/// Writes an integer.
pub fn put_i64(out: &mut Vec<u8>, v: i64) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Reads an integer.
pub fn get_i64(input: &mut &[u8]) -> Result<i64, DecodeError> {
    Ok(i64::from_le_bytes(take(input, 8)?.try_into().expect("eight bytes")))
}

/// Writes a double.
pub fn put_f64(out: &mut Vec<u8>, v: f64) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Reads a double.
pub fn get_f64(input: &mut &[u8]) -> Result<f64, DecodeError> {
    Ok(f64::from_le_bytes(take(input, 8)?.try_into().expect("eight bytes")))
}

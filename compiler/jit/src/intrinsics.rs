//! The only functions of ours that generated code calls. None is called per value: strings reach them when their
//! lengths and first bytes could not tell.

use cranelift_codegen::ir::{AbiParam, Signature, Type, types};

/// One imported function.
pub(crate) struct Intrinsic {
    /// Name in the module's symbol table and in printed CLIF.
    pub name: &'static str,
    /// Types of the parameters; all return an `i32`.
    pub params: &'static [Type],
    /// Its address.
    pub address: fn() -> *const u8,
}

/// Position of [`bytes_equal`] in [`TABLE`].
pub(crate) const BYTES_EQUAL: usize = 0;
/// Position of [`bytes_compare`] in [`TABLE`].
pub(crate) const BYTES_COMPARE: usize = 1;

/// All of them.
pub(crate) const TABLE: [Intrinsic; 2] = [
    Intrinsic {
        name: "ssql_bytes_equal",
        params: &[types::I64, types::I64, types::I64],
        address: || bytes_equal as *const u8,
    },
    Intrinsic {
        name: "ssql_bytes_compare",
        params: &[types::I64, types::I64, types::I64, types::I64],
        address: || bytes_compare as *const u8,
    },
];

impl Intrinsic {
    /// Fills in its signature; the calling convention is already the host's.
    pub(crate) fn signature(&self, signature: &mut Signature) {
        signature.params.extend(self.params.iter().map(|&t| AbiParam::new(t)));
        signature.returns.push(AbiParam::new(types::I32));
    }
}

/// 1 if both hold the same `len` bytes, else 0.
///
/// # Safety
/// Both point to `len` readable bytes.
unsafe extern "C" fn bytes_equal(a: *const u8, b: *const u8, len: u64) -> i32 {
    // SAFETY: generated code passes the places of two live strings that are at least `len` bytes long.
    let (a, b) = unsafe { (std::slice::from_raw_parts(a, len as usize), std::slice::from_raw_parts(b, len as usize)) };
    i32::from(a == b)
}

/// Negative, 0 or positive as `a` sorts before, with or after `b`, byte by byte.
///
/// # Safety
/// They point to `a_len` and `b_len` readable bytes.
unsafe extern "C" fn bytes_compare(a: *const u8, a_len: u64, b: *const u8, b_len: u64) -> i32 {
    // SAFETY: generated code passes the places and lengths of two live strings.
    let (a, b) =
        unsafe { (std::slice::from_raw_parts(a, a_len as usize), std::slice::from_raw_parts(b, b_len as usize)) };
    a.cmp(b) as i32
}

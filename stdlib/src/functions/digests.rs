//! Digests of bytes: `md5`, `sha1`, `sha2`, `crc32`, `hmac`. Text counts as its UTF-8 bytes.

use std::fmt::Write;

use arrow::datatypes::Int64Type;
use sha2::digest::core_api::BlockSizeUser;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::call::{Call, EvalResult};
use crate::error::EvalError;
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("md5", &[Param::Binary], Ret::String, digest::<md5::Md5>).doc(
        "MD5 digest, in hexadecimal.",
        "md5(expr)",
        "md5('stream')",
    ),
    scalar("sha1", &[Param::Binary], Ret::String, digest::<sha1::Sha1>).aliases(&["sha"]).doc(
        "SHA-1 digest, in hexadecimal.",
        "sha1(expr)",
        "sha1('stream')",
    ),
    scalar("sha2", &[Param::Binary, Param::Int], Ret::String, sha_2).nulls(NullRule::StrictNullable).doc(
        "SHA-2 digest of 224, 256, 384 or 512 bits (0 is 256), in hexadecimal; NULL for any other number.",
        "sha2(expr, bits)",
        "sha2('stream', 256)",
    ),
    scalar("crc32", &[Param::Binary], Ret::BigInt, |c| {
        let v = c.bytes(0);
        c.primitive::<Int64Type>(|r| Ok(Some(crc32fast::hash(v.get(r)).into())))
    })
    .doc("CRC-32 checksum.", "crc32(expr)", "crc32('stream')"),
    scalar("hmac", &[Param::Binary, Param::Binary, Param::String], Ret::Binary, hmac).optional(1).doc(
        "Keyed digest of a message by `MD5`, `SHA-1`, `SHA-224`, `SHA-256` (the default), `SHA-384` or `SHA-512`.",
        "hmac(key, message[, algorithm])",
        "hex(hmac('key', 'data'))",
    ),
];

fn write_hex(bytes: &[u8], out: &mut String) {
    for b in bytes {
        write!(out, "{b:02x}").expect("writing to a string");
    }
}

fn digest<D: Digest>(c: &Call<'_>) -> EvalResult {
    let v = c.bytes(0);
    c.strings(|r, out| {
        write_hex(&D::digest(v.get(r)), out);
        Ok(true)
    })
}

fn sha_2(c: &Call<'_>) -> EvalResult {
    let (v, bits) = (c.bytes(0), c.i32(1));
    c.strings(|r, out| {
        match bits.get(r) {
            0 | 256 => write_hex(&Sha256::digest(v.get(r)), out),
            224 => write_hex(&Sha224::digest(v.get(r)), out),
            384 => write_hex(&Sha384::digest(v.get(r)), out),
            512 => write_hex(&Sha512::digest(v.get(r)), out),
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// RFC 2104.
fn keyed<D: Digest + BlockSizeUser>(key: &[u8], message: &[u8], out: &mut Vec<u8>) {
    let mut block = vec![0u8; D::block_size()];
    if key.len() > block.len() {
        let short = D::digest(key);
        block[..short.len()].copy_from_slice(&short);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |with: u8| block.iter().map(|b| b ^ with).collect::<Vec<u8>>();
    let inner = D::new().chain_update(pad(0x36)).chain_update(message).finalize();
    out.extend_from_slice(&D::new().chain_update(pad(0x5c)).chain_update(inner).finalize());
}

fn hmac(c: &Call<'_>) -> EvalResult {
    let (key, message) = (c.bytes(0), c.bytes(1));
    let algorithm = (c.len() == 3).then(|| c.str(2));
    c.binaries(|r, out| {
        let name = algorithm.as_ref().map_or("SHA-256", |a| a.get(r));
        let run = match name.to_ascii_uppercase().replace('-', "").as_str() {
            "MD5" => keyed::<md5::Md5>,
            "SHA1" => keyed::<sha1::Sha1>,
            "SHA224" => keyed::<Sha224>,
            "SHA256" => keyed::<Sha256>,
            "SHA384" => keyed::<Sha384>,
            "SHA512" => keyed::<Sha512>,
            _ => {
                return Err(EvalError::new(
                    "INVALID_PARAMETER_VALUE.HMAC_ALGORITHM",
                    format!("`hmac` has no algorithm '{name}'."),
                )
                .with_help("use MD5, SHA-1, SHA-224, SHA-256, SHA-384 or SHA-512"));
            }
        };
        run(key.get(r), message.get(r), out);
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{binary, eval, expr, int, null, str};

    #[test]
    fn digests() {
        assert_eq!(eval("md5", &[str("stream")]), "f7b44cfafd5c52223d5498196c8a2e7b");
        assert_eq!(eval("md5", &[binary(&[0])]), "93b885adfe0da089cdf634904fd59f71");
        assert_eq!(eval("sha", &[str("stream")]), "c82e3d7279efa3eca576370af952c815d48ce41f");
        assert_eq!(eval("crc32", &[str("stream")]), "4041850396");
        assert_eq!(eval("crc32", &[str("")]), "0");
        assert_eq!(eval("md5", &[null()]), "NULL");
        assert_eq!(eval("md5", &[int(5)]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        let sha2 = |bits: i32| eval("sha2", &[str("stream"), int(bits)]);
        assert_eq!(sha2(256), "dca83e717b1f64eb141057a7415a330ad1361f51703efa2e4776f40047898a04");
        assert_eq!(sha2(0), sha2(256));
        assert_eq!(sha2(224), "d9c2289afbb7bc5bf5fd9954cfa8c4d000af1390c25dba6724a19889");
        assert_eq!((sha2(384).len(), sha2(512).len()), (96, 128));
        assert_eq!(sha2(100), "NULL");
    }

    #[test]
    fn keyed_digests() {
        // RFC 4231, test case 2.
        assert_eq!(
            eval("hex", &[expr("hmac", &[str("Jefe"), str("what do ya want for nothing?")])]),
            "5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843"
        );
        assert_eq!(eval("hmac", &[str("k"), str("m"), str("NOPE")]), "!INVALID_PARAMETER_VALUE.HMAC_ALGORITHM");
    }
}

//! `aes_encrypt` and `aes_decrypt`: AES with keys of 16, 24 or 32 bytes in the modes GCM, CBC and ECB.
//!
//! Encrypted bytes begin with the initialization vector (12 bytes of GCM, 16 of CBC), as Spark's do. A vector that is not
//! given is drawn from the system's source of randomness.

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockDecryptMut, BlockEncryptMut, KeyInit, KeyIvInit, consts};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::{Aead, Payload};
use rand::TryRngCore;
use rand::rngs::OsRng;
use ssql_ir::DataType as T;

use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("aes_encrypt", encrypt_type, |c| run(c, encrypt)).volatile().doc(
        "The bytes encrypted by AES: in the mode GCM (the default), CBC or ECB, with an initialization vector of its own \
         unless one is given.",
        "aes_encrypt(bytes, key[, mode[, padding[, iv[, aad]]]])",
        "",
    ),
    scalar_with("aes_decrypt", decrypt_type, |c| run(c, decrypt)).doc(
        "The bytes that were encrypted by `aes_encrypt`.",
        "aes_decrypt(bytes, key[, mode[, padding[, aad]]])",
        "aes_decrypt(unbase64('NI/zfr3gW3iAujOQaPvaXg=='), '0000111122223333', 'ECB')",
    ),
    scalar_with("try_aes_decrypt", decrypt_type, |c| run(c, decrypt)).nulls(NullRule::StrictNullable).doc(
        "As `aes_decrypt`; NULL where the bytes cannot be decrypted.",
        "try_aes_decrypt(bytes, key[, mode[, padding[, aad]]])",
        "try_aes_decrypt(unhex('00'), '0000111122223333')",
    ),
];

fn encrypt_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    Ok(Typed::new(c.fixed(&ENCRYPT, 4, false)?, T::Binary))
}

const ENCRYPT: [Param; 6] = [Param::Binary, Param::Binary, Param::String, Param::String, Param::Binary, Param::Binary];
const DECRYPT: [Param; 5] = [Param::Binary, Param::Binary, Param::String, Param::String, Param::Binary];

fn decrypt_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    Ok(Typed::new(c.fixed(&DECRYPT, 3, false)?, T::Binary))
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Gcm,
    Cbc,
    Ecb,
}

impl Mode {
    fn of(mode: &str, padding: &str) -> Result<Mode, EvalError> {
        match (mode.to_ascii_uppercase().as_str(), padding.to_ascii_uppercase().as_str()) {
            ("GCM", "NONE" | "DEFAULT") => Ok(Mode::Gcm),
            ("CBC", "PKCS" | "DEFAULT") => Ok(Mode::Cbc),
            ("ECB", "PKCS" | "DEFAULT") => Ok(Mode::Ecb),
            _ => Err(EvalError::new(
                "UNSUPPORTED_FEATURE.AES_MODE",
                format!("AES in the mode {mode} with the padding {padding} is not supported."),
            )
            .with_help("the modes are GCM without padding, and CBC and ECB with the padding PKCS")),
        }
    }

    /// Bytes of an initialization vector.
    fn vector(self) -> usize {
        match self {
            Mode::Gcm => 12,
            Mode::Cbc => 16,
            Mode::Ecb => 0,
        }
    }
}

/// One row's question.
struct Job<'a> {
    mode: Mode,
    input: &'a [u8],
    key: &'a [u8],
    vector: &'a [u8],
    extra: &'a [u8],
}

fn crypto_error(c: &Call<'_>, what: &str) -> EvalError {
    EvalError::new("INVALID_PARAMETER_VALUE.AES_CRYPTO_ERROR", format!("`{}`: {what}.", c.name))
}

/// Reads the arguments of each row.
fn run(c: &Call<'_>, work: fn(&Call<'_>, &Job<'_>) -> Result<Vec<u8>, EvalError>) -> EvalResult {
    let encrypts = c.name == "aes_encrypt";
    let (input, key) = (c.bytes(0), c.bytes(1));
    let mode = (c.len() > 2).then(|| c.str(2));
    let padding = (c.len() > 3).then(|| c.str(3));
    let vector = (encrypts && c.len() > 4).then(|| c.bytes(4));
    let at = if encrypts { 5 } else { 4 };
    let extra = (c.len() > at).then(|| c.bytes(at));
    c.binaries(|row, out| {
        let mode =
            Mode::of(mode.as_ref().map_or("GCM", |m| m.get(row)), padding.as_ref().map_or("DEFAULT", |p| p.get(row)));
        let job = Job {
            mode: mode?,
            input: input.get(row),
            key: key.get(row),
            vector: vector.as_ref().map_or(&[], |v| v.get(row)),
            extra: extra.as_ref().map_or(&[], |e| e.get(row)),
        };
        if !matches!(job.key.len(), 16 | 24 | 32) {
            return Err(EvalError::new(
                "INVALID_PARAMETER_VALUE.AES_KEY_LENGTH",
                format!("A key of AES has 16, 24 or 32 bytes, not {}.", job.key.len()),
            ));
        }
        if !job.vector.is_empty() && job.mode == Mode::Ecb {
            return Err(EvalError::new(
                "UNSUPPORTED_FEATURE.AES_UNSUPPORTED_IV",
                "The mode ECB takes no initialization vector.",
            ));
        }
        if !job.vector.is_empty() && job.vector.len() != job.mode.vector() {
            return Err(EvalError::new(
                "INVALID_PARAMETER_VALUE.AES_IV_LENGTH",
                format!(
                    "An initialization vector has 16 bytes in the mode CBC and 12 in the mode GCM, not {}.",
                    job.vector.len()
                ),
            ));
        }
        if !job.extra.is_empty() && job.mode != Mode::Gcm {
            return Err(EvalError::new(
                "UNSUPPORTED_FEATURE.AES_UNSUPPORTED_AAD",
                "Only the mode GCM takes additional authenticated data.",
            ));
        }
        match work(c, &job) {
            Ok(bytes) => {
                out.extend_from_slice(&bytes);
                Ok(true)
            }
            Err(_) if c.name == "try_aes_decrypt" => Ok(false),
            Err(e) => Err(e),
        }
    })
}

/// Calls a generic function for the cipher that the key's length asks for.
macro_rules! by_key {
    ($key:expr, $f:ident($($arg:expr),*)) => {
        match $key.len() {
            16 => $f::<Aes128>($($arg),*),
            24 => $f::<Aes192>($($arg),*),
            _ => $f::<Aes256>($($arg),*),
        }
    };
}

fn encrypt(c: &Call<'_>, job: &Job<'_>) -> Result<Vec<u8>, EvalError> {
    let mut vector = job.vector.to_vec();
    if vector.is_empty() {
        vector.resize(job.mode.vector(), 0);
        OsRng.try_fill_bytes(&mut vector).map_err(|e| crypto_error(c, &e.to_string()))?;
    }
    let bytes = match job.mode {
        Mode::Gcm => match job.key.len() {
            16 => seal::<AesGcm<Aes128, consts::U12>>(job, &vector),
            24 => seal::<AesGcm<Aes192, consts::U12>>(job, &vector),
            _ => seal::<AesGcm<Aes256, consts::U12>>(job, &vector),
        },
        _ => by_key!(job.key, encrypt_blocks(job, &vector)),
    };
    let bytes = bytes.ok_or_else(|| crypto_error(c, "the bytes cannot be encrypted"))?;
    vector.extend_from_slice(&bytes);
    Ok(vector)
}

fn decrypt(c: &Call<'_>, job: &Job<'_>) -> Result<Vec<u8>, EvalError> {
    let fail = || crypto_error(c, "the bytes are not what this key encrypted");
    let (vector, rest) = job.input.split_at_checked(job.mode.vector()).ok_or_else(fail)?;
    let job = Job { input: rest, ..*job };
    match job.mode {
        Mode::Gcm => match job.key.len() {
            16 => open::<AesGcm<Aes128, consts::U12>>(&job, vector),
            24 => open::<AesGcm<Aes192, consts::U12>>(&job, vector),
            _ => open::<AesGcm<Aes256, consts::U12>>(&job, vector),
        },
        _ => by_key!(job.key, decrypt_blocks(&job, vector)),
    }
    .ok_or_else(fail)
}

fn seal<A: Aead + KeyInit>(job: &Job<'_>, vector: &[u8]) -> Option<Vec<u8>> {
    let nonce = aes_gcm::aead::Nonce::<A>::from_slice(vector);
    A::new_from_slice(job.key).ok()?.encrypt(nonce, Payload { msg: job.input, aad: job.extra }).ok()
}

fn open<A: Aead + KeyInit>(job: &Job<'_>, vector: &[u8]) -> Option<Vec<u8>> {
    let nonce = aes_gcm::aead::Nonce::<A>::from_slice(vector);
    A::new_from_slice(job.key).ok()?.decrypt(nonce, Payload { msg: job.input, aad: job.extra }).ok()
}

fn encrypt_blocks<C>(job: &Job<'_>, vector: &[u8]) -> Option<Vec<u8>>
where
    C: aes::cipher::BlockEncryptMut + aes::cipher::BlockCipher + KeyInit,
{
    Some(match job.mode {
        Mode::Cbc => {
            cbc::Encryptor::<C>::new_from_slices(job.key, vector).ok()?.encrypt_padded_vec_mut::<Pkcs7>(job.input)
        }
        _ => ecb::Encryptor::<C>::new_from_slice(job.key).ok()?.encrypt_padded_vec_mut::<Pkcs7>(job.input),
    })
}

fn decrypt_blocks<C>(job: &Job<'_>, vector: &[u8]) -> Option<Vec<u8>>
where
    C: aes::cipher::BlockDecryptMut + aes::cipher::BlockCipher + KeyInit,
{
    match job.mode {
        Mode::Cbc => {
            cbc::Decryptor::<C>::new_from_slices(job.key, vector).ok()?.decrypt_padded_vec_mut::<Pkcs7>(job.input).ok()
        }
        _ => ecb::Decryptor::<C>::new_from_slice(job.key).ok()?.decrypt_padded_vec_mut::<Pkcs7>(job.input).ok(),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    const KEY: &str = "0000111122223333";

    #[test]
    fn what_is_encrypted_is_read_again() {
        for mode in ["GCM", "CBC", "ECB"] {
            for key in [KEY, "000011112222333344445555", "00001111222233334444555566667777"] {
                let hidden = expr("aes_encrypt", &[str("Spark"), str(key), str(mode)]);
                assert_eq!(eval("aes_decrypt", &[hidden.clone(), str(key), str(mode)]), "Spark", "{mode}");
                let other = format!("{}x", &key[..key.len() - 1]);
                assert_ne!(eval("try_aes_decrypt", &[hidden, str(&other), str(mode)]), "Spark", "{mode}");
            }
        }
    }

    #[test]
    fn bytes_are_those_of_spark() {
        let encrypt = |args: &[Arg]| eval("base64", &[expr("aes_encrypt", args)]);
        let long = "00001111222233334444555566667777";
        assert_eq!(encrypt(&[str("Spark"), str(KEY), str("ECB")]), "NI/zfr3gW3iAujOQaPvaXg==");
        assert_eq!(
            encrypt(&[str("Spark"), str(long), str("CBC"), str("PKCS"), binary(&[0; 16])]),
            "AAAAAAAAAAAAAAAAAAAAAM9tBAMGeVYTBMAoi9+eHuM="
        );
        assert_eq!(
            encrypt(&[str("Spark"), str(long), str("GCM"), str("DEFAULT"), binary(&[0; 12]), str("aad")]),
            "AAAAAAAAAAAAAAAAmXvCQ2bZDbVAsyKHvJr2jtEeYDy0"
        );
    }

    #[test]
    fn mistakes() {
        let encrypt = |args: &[Arg]| eval("aes_encrypt", args);
        assert_eq!(encrypt(&[str("x"), str("123")]), "!INVALID_PARAMETER_VALUE.AES_KEY_LENGTH");
        assert_eq!(encrypt(&[str("x"), str(KEY), str("XXX")]), "!UNSUPPORTED_FEATURE.AES_MODE");
        assert_eq!(encrypt(&[str("x"), str(KEY), str("CBC"), str("NONE")]), "!UNSUPPORTED_FEATURE.AES_MODE");
        assert_eq!(eval("aes_decrypt", &[binary(&[0]), str(KEY)]), "!INVALID_PARAMETER_VALUE.AES_CRYPTO_ERROR");
        assert_eq!(eval("try_aes_decrypt", &[binary(&[0]), str(KEY)]), "NULL");
    }
}

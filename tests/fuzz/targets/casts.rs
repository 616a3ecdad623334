//! Fuzz target: see `ssql_fuzz::casts`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::casts(data));

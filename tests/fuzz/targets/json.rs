//! Fuzz target: see `ssql_fuzz::json`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::json(data));

//! Fuzz target: see `ssql_fuzz::ir`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::ir(data));

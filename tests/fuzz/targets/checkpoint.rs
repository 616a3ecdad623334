//! Fuzz target: see `ssql_fuzz::checkpoint`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::checkpoint(data));

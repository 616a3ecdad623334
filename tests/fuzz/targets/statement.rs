//! Fuzz target: see `ssql_fuzz::statement`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::statement(data));

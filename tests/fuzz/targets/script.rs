//! Fuzz target: see `ssql_fuzz::script`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::script(data));

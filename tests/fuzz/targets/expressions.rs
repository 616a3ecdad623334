//! Fuzz target: see `ssql_fuzz::expressions`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::expressions(data));

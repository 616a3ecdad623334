//! Fuzz target: see `ssql_fuzz::csv`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ssql_fuzz::csv(data));

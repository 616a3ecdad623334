//! Tells the tests which platform they are built for.

fn main() {
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=SSQL_HOST={target}");
}

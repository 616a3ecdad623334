//! Generates the statement parser from `src/ssql.lalrpop`.

fn main() {
    println!("cargo:rerun-if-changed=src/ssql.lalrpop");
    if let Err(error) = lalrpop::process_src() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

//! What the test tiers share: where things are, files of a tier, and readable differences.

use std::path::{Path, PathBuf};

/// The workspace's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ stands in the workspace").to_path_buf()
}

/// All files below `dir` with that extension, sorted; the build folder and hidden folders are passed over.
pub fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    fn below(dir: &Path, extension: &str, into: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(dir) else { return };
        for path in entries.filter_map(|e| Some(e.ok()?.path())) {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    below(&path, extension, into);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                into.push(path);
            }
        }
    }
    let mut all = Vec::new();
    below(dir, extension, &mut all);
    all.sort();
    all
}

/// A path as the tests name it: from `dir`, without extension, with `/`.
pub fn short_name(path: &Path, dir: &Path) -> String {
    let short = path.strip_prefix(dir).unwrap_or(path).with_extension("");
    short.to_string_lossy().replace('\\', "/")
}

/// Both texts line by line, `-` expected, `+` actual.
pub fn difference(expected: &str, actual: &str) -> String {
    similar::TextDiff::from_lines(expected, actual).unified_diff().context_radius(3).to_string()
}

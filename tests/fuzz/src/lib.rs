//! The bodies of the fuzz targets: each takes arbitrary bytes and panics where a promise is broken.
//!
//! They are run by libFuzzer (`tests/fuzz/README.md`) and, over the small corpus that is kept here, by the ordinary tests
//! (`tests/fuzz/replay.rs`), so this file is compiled in two places and uses the project's crates alone.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::buffer::Buffer;
use jiff::tz::TimeZone;
use rand::Rng;
use ssql::session::{Session, SessionConfig};
use ssql_connectors::Decoder;
use ssql_connectors::csv::{CsvDecoder, CsvOptions};
use ssql_connectors::json::{JsonDecoder, JsonOptions};
use ssql_engine::connector::Options;
use ssql_grammar::print::format_script;
use ssql_grammar::{SourceFile, parse_script};
use ssql_ir::{CastMode, DataType, Field};
use ssql_stdlib::{EvalContext, cast_array, parse_data_type, parse_schema};

#[path = "../../../compiler/jit/tests/support/mod.rs"]
mod jit_support;

/// Longer inputs find nothing new and are slow.
const MAX_TEXT: usize = 2048;

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data.get(..MAX_TEXT).unwrap_or(data)).ok()
}

/// What scripts under test may name.
const RELATIONS: &str = "
CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, d DOUBLE, a ARRAY<INT>, m MAP<STRING, INT>, r STRUCT<x: INT, y: STRING>) USING memory;
CREATE STREAM t (ts TIMESTAMP, k STRING, w BIGINT, WATERMARK FOR ts DELAY OF INTERVAL 5 SECONDS) USING memory;
CREATE TABLE d (k STRING, n DECIMAL(10,2), day DATE);
CREATE SINK o USING memory;
";

/// Any text: parsing and planning end, without a panic; formatted text is formatted to itself and means the same.
pub fn script(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let file = SourceFile::new("script.ssql", text);
    let (script, _) = parse_script(&file);
    if let Ok(printed) = format_script(&file) {
        let again = SourceFile::new("printed.ssql", printed.as_str());
        match format_script(&again) {
            Ok(second) => assert_eq!(printed, second, "the format of formatted text"),
            Err(diagnostics) => panic!("formatted text does not parse: {diagnostics:?}\n{printed}"),
        }
        let (reparsed, _) = parse_script(&again);
        assert_eq!(script.statements.len(), reparsed.statements.len(), "statements of formatted text\n{printed}");
    }
    // No file may be looked at, whatever the text says: connectors that open one when a relation is declared are out.
    if ["parquet", "kafka", "socket"].iter().all(|c| !text.to_ascii_lowercase().contains(c)) {
        let _ = ssql::check(&SourceFile::new("script.ssql", format!("{RELATIONS}{text}")), quiet());
    }
}

fn quiet() -> SessionConfig {
    SessionConfig { threads: 1, jit: Some("verify".to_owned()), manual: true, ..SessionConfig::default() }
}

/// A query that is run: it gives rows or an error, never a panic, an internal error, or other rows by generated code.
pub fn statement(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if text.contains(';') || text.len() > 300 {
        return;
    }
    let Ok(mut session) = Session::new(quiet()) else { return };
    let setup = format!(
        "{RELATIONS}INSERT INTO d VALUES ('a', 1.5, DATE '2024-02-29'), ('', -0.25, DATE '1969-12-31'), (NULL, NULL, NULL), ('é', 99999999.99, DATE '9999-12-31');"
    );
    session.run_script(&SourceFile::new("setup.ssql", setup)).expect("the relations are made");
    for statement in [format!("SELECT {text}"), format!("SELECT {text} FROM d")] {
        if let Err(failure) = session.run_script(&SourceFile::new("query.ssql", statement)) {
            let told = failure.to_string();
            assert!(!told.contains("INTERNAL_ERROR"), "{told}");
        }
    }
}

/// Typed expressions over columns with NULLs and extreme values: generated code gives what the reference gives, bit for
/// bit, or the same error.
pub fn expressions(data: &[u8]) {
    use jit_support::{Dice, Exprs, Taste, check_map, columns_of_all_types, random_batch};
    let results = [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Date,
        DataType::Timestamp,
        DataType::TimestampNtz,
    ];
    let schema = columns_of_all_types();
    let mut dice = Dice::bytes(data);
    let depth = dice.random_range(1..4);
    let predicate =
        dice.random::<bool>().then(|| Exprs { rng: &mut dice, schema: &schema }.expr(&DataType::Boolean, depth));
    let project: Vec<_> = (0..dice.random_range(0..3))
        .map(|_| {
            let t = &results[dice.random_range(0..results.len())];
            Exprs { rng: &mut dice, schema: &schema }.expr(t, depth)
        })
        .collect();
    let taste = if dice.random() { Taste::Wild } else { Taste::Tame };
    let rows = dice.random_range(0..40);
    let batch = random_batch(&mut dice, &schema, rows, taste);
    check_map(predicate.as_ref(), &project, &schema, &batch);
}

/// IR text: parsing ends without a panic, what it gives prints to itself, and the verifier has an opinion.
pub fn ir(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Ok(pipeline) = ssql_ir::parse::parse(text) else { return };
    let printed = pipeline.to_string();
    let again = ssql_ir::parse::parse(&printed).unwrap_or_else(|e| panic!("printed IR does not parse: {e}\n{printed}"));
    assert_eq!(printed, again.to_string(), "the print of printed IR");
    let _ = ssql_ir::verify::verify(&pipeline);
}

fn columns() -> Vec<Field> {
    let schema = "a INT, b STRING, c DOUBLE, d DECIMAL(12,3), e TIMESTAMP, f DATE, g BOOLEAN, h BIGINT, i BINARY, \
                  j TIMESTAMP_NTZ, k INTERVAL DAY TO SECOND, l INTERVAL MONTH, _corrupt_record STRING";
    parse_schema(schema).expect("a schema").fields
}

fn nested() -> Vec<Field> {
    let schema = "n ARRAY<INT>, o STRUCT<x: INT, y: ARRAY<STRING>>, p MAP<STRING, DOUBLE>, q ARRAY<STRUCT<z: DATE>>";
    parse_schema(schema).expect("a schema").fields
}

/// Decodes all of it, as the file source does, and looks at what came.
fn decode(decoder: &mut dyn Decoder, bytes: &[u8], n_columns: usize) -> Option<(usize, Vec<ArrayRef>)> {
    let buffer = Buffer::from(bytes);
    let (mut at, mut rows, mut last) = (0, 0, vec![]);
    decoder.begin_file();
    while at < bytes.len() {
        let stopped = decoder.decode(&buffer, at..bytes.len()).ok()?;
        assert!(stopped > at || decoder.is_full(), "no progress at byte {at} of {}", bytes.len());
        at = stopped;
        if decoder.is_full() || at >= bytes.len() {
            let decoded = decoder.take();
            assert_eq!(decoded.columns.len(), n_columns);
            for column in &decoded.columns {
                assert_eq!(column.len(), decoded.rows);
                column.to_data().validate_full().expect("a valid array");
            }
            rows += decoded.rows;
            last = decoded.columns;
        }
    }
    Some((rows, last))
}

fn options_of(pairs: &[(&str, &str)]) -> Options {
    Options::new(pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())))
}

/// The first byte chooses options; the rest are lines.
fn split(data: &[u8]) -> (usize, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (usize::from(*first), rest))
}

/// Lines of JSON in every mode: valid arrays or a bad record, whatever the bytes are; PERMISSIVE keeps every line.
pub fn json(data: &[u8]) {
    let (choice, bytes) = split(data);
    let mode = ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"][choice % 3];
    let lenient = if choice & 8 == 0 { "false" } else { "true" };
    let options = options_of(&[
        ("mode", mode),
        ("allowComments", lenient),
        ("allowUnquotedFieldNames", lenient),
        ("allowNumericLeadingZeros", lenient),
        ("allowBackslashEscapingAnyCharacter", lenient),
        ("allowUnquotedControlChars", lenient),
    ]);
    let mut fields = columns();
    fields.extend(nested());
    let read = JsonOptions::new(&options, &TimeZone::UTC).expect("good options");
    let mut decoder = JsonDecoder::new(&fields, read).expect("a decoder");
    decode(&mut decoder, bytes, fields.len());
}

/// Lines of CSV, likewise.
pub fn csv(data: &[u8]) {
    let (choice, bytes) = split(data);
    let mode = ["PERMISSIVE", "DROPMALFORMED", "FAILFAST"][choice % 3];
    let header = if choice & 8 == 0 { "false" } else { "true" };
    let separator = if choice & 16 == 0 { "," } else { "\t" };
    let escape = if choice & 32 == 0 { "\\" } else { "\"" };
    let options =
        options_of(&[("mode", mode), ("header", header), ("sep", separator), ("escape", escape), ("comment", "#")]);
    let fields = columns();
    let read = CsvOptions::new(&options, &TimeZone::UTC).expect("good options");
    let mut decoder = CsvDecoder::new(&fields, &fields, read).expect("a decoder");
    decode(&mut decoder, bytes, fields.len());
}

/// Texts as values of every type, as types, schemas, intervals, patterns and JSON: a value or an error.
pub fn casts(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let ctx = EvalContext::default();
    let array: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
    let mut targets: Vec<DataType> = columns().into_iter().map(|f| f.data_type).collect();
    targets.extend([DataType::Float32, DataType::Int8, DataType::Int16, DataType::Decimal(38, 38)]);
    targets.extend(["INTERVAL HOUR TO MINUTE", "INTERVAL YEAR TO MONTH"].iter().filter_map(|t| parse_data_type(t)));
    for t in &targets {
        let read = cast_array(&array, &DataType::String, t, CastMode::Try, &ctx).expect("TRY_CAST fails for no text");
        let strict = cast_array(&array, &DataType::String, t, CastMode::Ansi, &ctx);
        assert_eq!(strict.is_ok(), !arrow::array::Array::is_null(&read, 0), "`{text}` as {t}");
        // What was read prints, and its text is read as the same value.
        let printed = cast_array(&read, t, &DataType::String, CastMode::Ansi, &ctx).expect("every value prints");
        if strict.is_ok() && !matches!(t, DataType::Binary) {
            let again = cast_array(&printed, &DataType::String, t, CastMode::Try, &ctx).expect("no text fails");
            assert_eq!(&again, &read, "`{text}` as {t}, printed as {:?}", printed.as_string_view().value(0));
        }
    }
    if let Some(t) = parse_data_type(text) {
        assert_eq!(parse_data_type(&t.to_string()).as_ref(), Some(&t), "the type {t}");
    }
    let _ = parse_schema(text);
    let _ = ssql_stdlib::read_interval(text);
    // The text as an argument, so that no quoting is in its way.
    let mut session = Session::new(quiet()).expect("a session");
    let quoted = text.replace('\\', "\\\\").replace('\'', "\\'");
    for call in [
        "date_format(TIMESTAMP '2024-02-29 12:34:56.789', @)",
        "to_timestamp('2024-02-29 12:34:56', @)",
        "to_date('2024-02-29', @)",
        "'abc' LIKE @",
        "'abc' RLIKE @",
        "regexp_replace('abcabc', @, '$1')",
        "format_string(@, 1, 'x', 2.5)",
        "to_number('12,345.67', @)",
        "format_number(12345.678, @)",
        "from_json(@, 'a INT, b ARRAY<STRING>, c STRUCT<d: DOUBLE>')",
        "from_json('{\"a\": 1}', @)",
        "get_json_object(@, '$.a[0].b')",
        "get_json_object('{\"a\": [{\"b\": 1}]}', @)",
        "schema_of_json(@)",
        "parse_url(@, 'QUERY', 'a')",
        "str_to_map(@)",
        "split('a,b,c', @)",
        "from_utc_timestamp(TIMESTAMP '2024-02-29 12:00:00', @)",
        "conv(@, 36, 10)",
        "unhex(@)",
        "unbase64(@)",
        "soundex(@)",
        "initcap(@)",
        "sentences(@)",
    ] {
        let query = format!("SELECT {}", call.replace('@', &format!("'{quoted}'")));
        if let Err(failure) = session.run_script(&SourceFile::new("query.ssql", query)) {
            let told = failure.to_string();
            assert!(!told.contains("INTERNAL_ERROR"), "{told}");
        }
    }
}

/// A checkpoint with damage: opening it is an error or goes on, never a panic, and never takes memory without bound.
///
/// The first bytes choose a file and where in it; the rest replaces what stands there, or cuts the file off.
pub fn checkpoint(data: &[u8]) {
    let [which, high, low, how, bytes @ ..] = data else { return };
    let template = template();
    let work = tempfile::tempdir().expect("a folder");
    let files = copy(&template.join("cp"), &work.path().join("cp"));
    copy(&template.join("in"), &work.path().join("in"));
    let file = &files[usize::from(*which) % files.len()];
    let mut content = std::fs::read(file).expect("a file of the copy");
    let at = usize::from(u16::from_be_bytes([*high, *low])).min(content.len());
    match how % 4 {
        0 => content.truncate(at),
        1 => content.splice(at..at, bytes.iter().copied()).for_each(drop),
        2 => {
            let end = (at + bytes.len()).min(content.len());
            content.splice(at..end, bytes.iter().copied()).for_each(drop);
        }
        _ => {
            content.truncate(at);
            content.extend_from_slice(bytes);
        }
    }
    std::fs::write(file, content).expect("the damage is done");
    if let Err(told) = run_job(work.path()) {
        assert!(!told.contains("INTERNAL_ERROR") && !told.contains("panicked"), "{told}");
    }
}

fn run_job(dir: &Path) -> Result<(), String> {
    let script = "
CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, WATERMARK FOR ts DELAY OF INTERVAL 1 MINUTE) USING json LOCATION 'in' OPTIONS (maxFilesPerTrigger 1);
CREATE SINK a USING noop;
CREATE SINK b USING noop;
CREATE QUERY q AS INSERT INTO a SELECT window_start, k, sum(v) AS n, collect_list(v) AS l FROM s GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES), k EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'cp/q';
CREATE QUERY p AS INSERT INTO b SELECT DISTINCT ON (k) WITHIN WATERMARK ts, k FROM s EMIT APPEND TRIGGER AVAILABLE NOW CHECKPOINT LOCATION 'cp/p';
AWAIT QUERY q;
AWAIT QUERY p;";
    let config = SessionConfig { base_dir: dir.to_path_buf(), manual: false, ..quiet() };
    let mut session = Session::new(config).map_err(|e| e.to_string())?;
    session.run_script(&SourceFile::new("job.ssql", script)).map(drop).map_err(|e| e.to_string())
}

/// A run that has ended, made once a process.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a folder").keep();
        std::fs::create_dir(dir.join("in")).expect("a folder");
        for i in 0..3 {
            let lines: String = (0..5)
                .map(|j| format!("{{\"ts\":\"2024-01-01 00:{:02}:00\",\"k\":\"k{j}\",\"v\":{i}}}\n", 7 * i + j))
                .collect();
            std::fs::write(dir.join(format!("in/{i}.json")), lines).expect("a file");
        }
        run_job(&dir).expect("the undamaged run");
        dir
    })
}

/// Copies a folder, and returns its files in order.
fn copy(from: &Path, to: &Path) -> Vec<PathBuf> {
    std::fs::create_dir_all(to).expect("a folder");
    let mut entries: Vec<_> = std::fs::read_dir(from).expect("a folder").flatten().map(|e| e.path()).collect();
    entries.sort();
    let mut files = vec![];
    for entry in entries {
        let target = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            files.extend(copy(&entry, &target));
        } else {
            std::fs::copy(&entry, &target).expect("a copy");
            files.push(target);
        }
    }
    files
}

//! The file source against Spark's rules: which files, in which order, how many at a time, each once; faults between
//! listing and reading; input that means harm.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use ssql_engine::connector::{Connector, ConnectorError, Declaration, Offset, ReadLimit, Restored, Source, SplitStats};

use super::{FileConnector, Format};
use crate::testing::{options, printed, schema};

/// A folder with files, and a source over it.
struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn new() -> Folder {
        Folder { dir: tempfile::tempdir().expect("scratch") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("in").join(name)
    }

    /// Writes a file of that age: the second of its modification time.
    fn put(&self, name: &str, second: u64, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("creates");
        fs::write(&path, text).expect("writes");
        let file = fs::File::options().write(true).open(&path).expect("opens");
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000 + second)).expect("sets");
        path
    }

    /// One JSON row a file: its name without the suffix.
    fn row(&self, name: &str, second: u64) {
        let stem = Path::new(name).file_stem().expect("a name").to_string_lossy().into_owned();
        self.put(name, second, format!("{{\"v\":\"{stem}\"}}\n"));
    }

    fn declaration(&self, columns: &str, given: &[(&str, &str)]) -> Declaration {
        Declaration {
            name: "s".to_owned(),
            schema: schema(columns),
            location: Some(self.dir.path().join("in").display().to_string()),
            options: options(given),
            partition_by: Vec::new(),
            time_zone: jiff::tz::TimeZone::UTC,
        }
    }

    fn source(&self, given: &[(&str, &str)]) -> Reading {
        self.source_of(Format::Json, "v STRING", given)
    }

    fn source_of(&self, format: Format, columns: &str, given: &[(&str, &str)]) -> Reading {
        let declaration = self.declaration(columns, given);
        let source = FileConnector::new(format).source(&declaration).expect("a source");
        Reading { source, at: None, entries: Vec::new() }
    }
}

/// A source and how far it was read.
struct Reading {
    source: Box<dyn Source>,
    at: Option<Offset>,
    entries: Vec<(u64, Vec<u8>)>,
}

impl Reading {
    /// The rows of the next batch, sorted; none if there is none.
    fn next(&mut self) -> Vec<String> {
        self.try_next().expect("reads").0
    }

    fn plan(&mut self) -> Option<Offset> {
        let batch = self.source.latest(self.at.as_ref(), ReadLimit::Options, 0).expect("lists")?;
        self.entries.extend(batch.log_entry.map(|entry| (self.entries.len() as u64, entry)));
        Some(batch.end)
    }

    fn try_next(&mut self) -> Result<(Vec<String>, SplitStats), ConnectorError> {
        let Some(end) = self.plan() else { return Ok(Default::default()) };
        let read = self.read(&end);
        if read.is_ok() {
            self.source.committed(&end)?;
            self.at = Some(end);
        }
        read
    }

    fn read(&mut self, end: &Offset) -> Result<(Vec<String>, SplitStats), ConnectorError> {
        let all: Vec<u32> = (0..self.source.schema().len() as u32).collect();
        let (mut rows, mut stats) = (Vec::new(), SplitStats::default());
        for mut split in self.source.splits(self.at.as_ref(), end, &all)? {
            let read = split.read(&mut |batch| {
                rows.extend(printed(&[batch]));
                Ok(())
            });
            let read = read.map_err(|e| *e.downcast::<ConnectorError>().expect("a connector's error"))?;
            stats.rows += read.rows;
            stats.bad_records += read.bad_records;
        }
        rows.sort();
        Ok((rows, stats))
    }

    /// All batches until there is nothing new.
    fn all(&mut self) -> Vec<Vec<String>> {
        std::iter::from_fn(|| Some(self.next()).filter(|rows| !rows.is_empty())).collect()
    }
}

fn lines(batches: &[&[&str]]) -> Vec<Vec<String>> {
    batches.iter().map(|b| b.iter().map(|s| (*s).to_owned()).collect()).collect()
}

#[test]
fn so_many_files_or_bytes_at_a_time_in_order_of_age() {
    let folder = Folder::new();
    for (name, second) in [("c.json", 1), ("a.json", 2), ("b.json", 3), ("d.json", 4), ("e.json", 5)] {
        folder.row(name, second);
    }
    let by_two = folder.source(&[("maxFilesPerTrigger", "2")]).all();
    assert_eq!(by_two, lines(&[&["a", "c"], &["b", "d"], &["e"]]));
    // Each file has 10 bytes; one is always taken.
    assert_eq!(folder.source(&[("maxBytesPerTrigger", "25")]).all(), by_two);
    assert_eq!(folder.source(&[("maxBytesPerTrigger", "1")]).all().len(), 5);
    assert_eq!(folder.source(&[]).all(), lines(&[&["a", "b", "c", "d", "e"]]));
    let both = folder.declaration("v STRING", &[("maxFilesPerTrigger", "2"), ("maxBytesPerTrigger", "25")]);
    assert!(FileConnector::new(Format::Json).source(&both).is_err());
    for (name, value) in [("maxFilesPerTrigger", "0"), ("maxFilesPerTrigger", "x"), ("maxBytesPerTrigger", "-1")] {
        assert!(FileConnector::new(Format::Json).source(&folder.declaration("v STRING", &[(name, value)])).is_err());
    }
}

#[test]
fn newest_first_and_files_too_old() {
    let folder = Folder::new();
    for n in 1..=4 {
        folder.row(&format!("{n}.json"), n * 100);
    }
    let newest = [("latestFirst", "true"), ("maxFilesPerTrigger", "1"), ("maxFileAge", "150s")];
    // With a rate limit the age does not count: going backwards, old files are what is left.
    assert_eq!(folder.source(&newest).all(), lines(&[&["4"], &["3"], &["2"], &["1"]]));
    // The first listing takes all; from then on files older than the newest by more than the age are ignored.
    let mut aged = folder.source(&[("maxFileAge", "150s")]);
    assert_eq!(aged.next(), ["1", "2", "3", "4"]);
    folder.row("old.json", 200);
    folder.row("young.json", 300);
    assert_eq!(aged.next(), ["young"]);
    assert!(aged.next().is_empty());
}

#[test]
fn known_by_name_alone() {
    let folder = Folder::new();
    folder.row("x/a.json", 1);
    let by_name = [("fileNameOnly", "true"), ("recursiveFileLookup", "true")];
    let (mut by_name, mut by_path) = (folder.source(&by_name), folder.source(&by_name[1..]));
    assert_eq!((by_name.next(), by_path.next()), (vec!["a".to_owned()], vec!["a".to_owned()]));
    folder.row("y/a.json", 2);
    assert!(by_name.next().is_empty());
    assert_eq!(by_path.next(), ["a"]);
}

#[test]
fn a_small_cache_of_listed_files_loses_none() {
    let folder = Folder::new();
    for n in 10..40 {
        folder.row(&format!("{n}.json"), n);
    }
    for cached in ["0", "1", "7", "10000"] {
        let batches = folder.source(&[("maxCachedFiles", cached), ("maxFilesPerTrigger", "4")]).all();
        let rows: Vec<String> = batches.concat();
        assert_eq!(rows.len(), 30, "maxCachedFiles {cached}");
        assert!(rows.is_sorted(), "in order of age: {rows:?}");
    }
}

#[test]
fn read_files_are_deleted_or_put_aside() {
    let folder = Folder::new();
    folder.row("a.json", 1);
    let mut deleting = folder.source(&[("cleanSource", "delete")]);
    assert_eq!(deleting.next(), ["a"]);
    assert!(!folder.path("a.json").exists());
    folder.row("sub=1/b.json", 2);
    let aside = folder.dir.path().join("aside");
    let archive = [("cleanSource", "archive"), ("sourceArchiveDir", aside.to_str().expect("UTF-8"))];
    let mut archiving = folder.source(&archive);
    // Not before the batch is committed.
    let end = archiving.plan().expect("there is a batch");
    archiving.read(&end).expect("reads");
    assert!(folder.path("sub=1/b.json").exists());
    archiving.source.committed(&end).expect("commits");
    let below: PathBuf = folder.path("sub=1/b.json").components().skip(1).collect();
    assert!(!folder.path("sub=1/b.json").exists() && aside.join(below).exists());
    let inside = folder.path("inside");
    for wrong in [&archive[..1], &[archive[0], ("sourceArchiveDir", inside.to_str().expect("UTF-8"))]] {
        assert!(FileConnector::new(Format::Json).source(&folder.declaration("v STRING", wrong)).is_err());
    }
}

#[test]
fn which_files_belong() {
    let folder = Folder::new();
    for name in ["a.json", "b.txt", ".hidden.json", "_skip.json", "k=1/c.json", "plain/d.json", "x._COPYING_"] {
        folder.row(name, 1);
    }
    assert_eq!(folder.source(&[]).next(), ["a", "b", "c"]);
    assert_eq!(folder.source(&[("pathGlobFilter", "*.json")]).next(), ["a", "c"]);
    assert_eq!(folder.source(&[("recursiveFileLookup", "true")]).next(), ["a", "b", "c", "d"]);
    // Columns from directory names, unless all directories are looked through.
    folder.put("k=2/year=__HIVE_DEFAULT_PARTITION__/e.json", 1, "{\"v\":\"e\"}\n");
    let columns = "v STRING, k INT, year INT";
    let rows = folder.source_of(Format::Json, columns, &[("pathGlobFilter", "[ce].json")]).next();
    assert_eq!(rows, ["c|1|NULL", "e|2|NULL"]);
    let rows = folder
        .source_of(Format::Json, columns, &[("pathGlobFilter", "[ce].json"), ("recursiveFileLookup", "true")])
        .next();
    assert_eq!(rows, ["c|NULL|NULL", "e|NULL|NULL"]);
}

#[test]
fn each_file_once_through_restarts_and_a_log_made_short() {
    let folder = Folder::new();
    let given = [("maxFilesPerTrigger", "1"), ("maxFileAge", "1000s")];
    let mut seen = Vec::new();
    let mut entries = Vec::new();
    let mut at = None;
    for n in 0..12u64 {
        folder.row(&format!("{n:02}.json"), n * 100);
        let mut reading = folder.source(&given);
        let restored = Restored { entries: entries.clone(), offset: at.clone() };
        reading.source.restore(restored).expect("restores");
        reading.at = at.clone();
        seen.extend(reading.all().concat());
        at = reading.at.clone();
        entries.extend(reading.entries.drain(..).map(|(_, entry)| (n, entry)));
        if n % 4 == 3 {
            let compactor = reading.source.compactor().expect("it makes its log short");
            entries = vec![(n, compactor(std::mem::take(&mut entries)).expect("compacts"))];
        }
    }
    let expected: Vec<String> = (0..12).map(|n| format!("{n:02}")).collect();
    assert_eq!(seen, expected);
    let text = String::from_utf8_lossy(&entries[0].1).into_owned();
    assert!(!text.contains("00.json") && text.contains("11.json"), "files that are too old are left out: {text}");
    // What was left out stays ignored, whatever age is asked for now.
    let mut later = folder.source(&[("maxFileAge", "100d")]);
    later.source.restore(Restored { entries, offset: at.clone() }).expect("restores");
    later.at = at;
    assert!(later.next().is_empty());
}

#[test]
fn files_that_vanish_shrink_or_grow_between_listing_and_reading() {
    type Change = fn(&Path);
    let vanish: Change = |path| fs::remove_file(path).expect("removes");
    let shrink: Change = |path| fs::write(path, "{\"v\":\"a1\"}\n").expect("writes");
    let grow: Change = |path| {
        let mut file = fs::File::options().append(true).open(path).expect("opens");
        file.write_all(b"{\"v\":\"more\"}\n").expect("writes");
    };
    let read = |change: Change, given: &[(&str, &str)]| {
        let folder = Folder::new();
        let path = folder.put("a.json", 1, "{\"v\":\"a1\"}\n{\"v\":\"a2\"}\n");
        folder.row("b.json", 2);
        let mut reading = folder.source(given);
        let end = reading.plan().expect("there is a batch");
        change(&path);
        reading.read(&end).map(|(rows, _)| rows).map_err(|e| (e.condition, e.message, e.help))
    };
    let (condition, message, help) = read(vanish, &[]).expect_err("fails");
    assert_eq!(condition, "FAILED_READ_FILE.FILE_NOT_EXIST");
    assert!(message.contains("a.json") && help[0].contains("ignoreMissingFiles"), "{message} {help:?}");
    assert_eq!(read(vanish, &[("ignoreMissingFiles", "true")]).expect("passes over"), ["b"]);
    assert!(read(vanish, &[("ignoreCorruptFiles", "true")]).is_err(), "missing is not corrupt");
    for change in [shrink, grow] {
        assert_eq!(read(change, &[]).expect_err("fails").0, "FAILED_READ_FILE.FILE_CHANGED");
    }
    assert_eq!(read(shrink, &[("ignoreCorruptFiles", "true")]).expect("takes what is there"), ["a1", "b"]);
    // Only what was there when the batch was planned.
    assert_eq!(read(grow, &[("ignoreCorruptFiles", "true")]).expect("takes what was planned"), ["a1", "a2", "b"]);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

#[test]
fn broken_files_end_the_query_or_are_passed_over() {
    let folder = Folder::new();
    let text: String = (0..20_000).map(|n| format!("{{\"v\":\"row {n} {}\"}}\n", n * 7919 % 10007)).collect();
    let whole = gzip(text.as_bytes());
    folder.put("a.json.gz", 1, &whole[..whole.len() / 2]);
    folder.put("b.json.zst", 2, b"this is no zstd");
    folder.row("c.json", 3);
    let error = folder.source(&[]).try_next().expect_err("fails");
    assert!(error.condition == "FAILED_READ_FILE.NO_HINT" && !error.retry, "{}", error.message);
    let rows = folder.source(&[("ignoreCorruptFiles", "true")]).next();
    assert!(rows.contains(&"c".to_owned()) && rows.len() > 1000, "the first half counts: {} rows", rows.len());
    folder.put("d.parquet", 4, b"PAR1 and nothing more");
    let only = [("pathGlobFilter", "*.parquet"), ("ignoreCorruptFiles", "true")];
    assert!(folder.source_of(Format::Parquet, "v STRING", &only[..1]).try_next().is_err());
    assert!(folder.source_of(Format::Parquet, "v STRING", &only).try_next().expect("passes over").0.is_empty());
}

#[test]
fn bad_records_by_mode_with_their_count() {
    let folder = Folder::new();
    folder.put("a.json", 1, "{\"n\":1}\n{\"n\":\"x\"}\n{oops\n{\"n\":2}\n");
    let read = |mode| folder.source_of(Format::Json, "n INT", &[("mode", mode)]).try_next();
    let (rows, stats) = read("PERMISSIVE").expect("reads");
    assert_eq!((rows, stats.bad_records), (vec!["1".into(), "2".into(), "NULL".into(), "NULL".into()], 2));
    let (rows, stats) = read("DROPMALFORMED").expect("reads");
    assert_eq!((rows, stats.bad_records), (vec!["1".to_owned(), "2".to_owned()], 2));
    let error = read("FAILFAST").expect_err("fails");
    assert_eq!(error.condition, "MALFORMED_RECORD_IN_PARSING");
    assert!(error.message.contains("a.json` line 2") && error.message.contains("{\"n\":\"x\"}"), "{}", error.message);
    let corrupt = folder.source_of(Format::Json, "n INT, _corrupt_record STRING", &[]).next();
    assert_eq!(corrupt, ["1|NULL", "2|NULL", "NULL|{\"n\":\"x\"}", "NULL|{oops"]);
}

#[test]
fn a_line_of_any_length_takes_bounded_memory() {
    let folder = Folder::new();
    folder.put("a.json", 1, format!("{{\"v\":\"short\"}}\n{{\"v\":\"{}\"}}\n", "x".repeat(3 << 20)));
    for (most, taken) in [("4m", true), ("2m", false)] {
        let read = folder.source(&[("maxRecordBytes", most)]).try_next();
        match read {
            Ok((rows, _)) => assert!(taken && rows.len() == 2),
            Err(e) => assert!(!taken && e.condition == "FAILED_READ_FILE.RECORD_TOO_LONG", "{}", e.message),
        }
    }
    let whole = folder.source_of(Format::Text, "value STRING", &[("wholetext", "true"), ("maxRecordBytes", "2m")]);
    assert_eq!({ whole }.try_next().expect_err("fails").condition, "FAILED_READ_FILE.RECORD_TOO_LONG");
}

#[test]
fn what_decompresses_to_too_much_is_refused() {
    let folder = Folder::new();
    // 64 MiB of newlines, and of one line, from some ten kilobytes.
    for (name, byte) in [("lines.json.gz", b'\n'), ("line.json.gz", b' ')] {
        let bomb = gzip(&vec![byte; 64 << 20]);
        assert!(bomb.len() < 100_000);
        folder.put(name, 1, bomb);
        let only = [("pathGlobFilter", name), ("maxDecompressedBytes", "1m")];
        let error = folder.source(&only).try_next().expect_err("refused");
        assert!(error.message.contains("maxDecompressedBytes"), "{}", error.message);
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 19).expect("an encoder");
    encoder.write_all(&vec![b'\n'; 64 << 20]).expect("compresses");
    folder.put("z.json.zst", 1, encoder.finish().expect("compresses"));
    let only = [("pathGlobFilter", "z.*"), ("maxDecompressedBytes", "1m")];
    assert!(folder.source(&only).try_next().is_err());
}

#[test]
fn deep_nesting_huge_numbers_bad_utf8_and_many_columns_are_records_like_others() {
    let folder = Folder::new();
    let deep = format!("{{\"v\":{}{}}}\n", "[".repeat(200_000), "]".repeat(200_000));
    let objects = format!("{}1{}\n", "{\"v\":".repeat(200_000), "}".repeat(200_000));
    let number = format!("{{\"v\":{}}}\n", "9".repeat(1_000_000));
    let members: String = (0..1_000_000).map(|n| format!("\"m{n}\":1,")).collect();
    let wide = format!("{{{members}\"v\":\"wide\"}}\n");
    for (name, text) in [("deep", &deep), ("objects", &objects), ("number", &number), ("wide", &wide)] {
        folder.put(&format!("{name}.json"), 1, text);
    }
    folder.put("utf8.json", 1, b"{\"v\":\"\xff\xfe\"}\n\xff\n");
    folder.put("zero.json", 1, b"\0\0\0\n{\"v\":\"\\u0000\"}\n");
    let rows = folder.source(&[]).next();
    assert_eq!(rows.len(), 8, "a row for each line");
    assert!(rows.contains(&"wide".to_owned()));
    let fields = ["1"; 1_000_000].join(",");
    folder.put("wide.csv", 1, format!("{fields}\n{}\n", "\"".repeat(100_001)));
    let rows = folder.source_of(Format::Csv, "a STRING, b STRING", &[("pathGlobFilter", "*.csv")]).next();
    assert!(!rows.is_empty() && rows.contains(&"1|1".to_owned()), "{} rows", rows.len());
}

#[cfg(unix)]
#[test]
fn names_and_links_that_mean_harm() {
    let folder = Folder::new();
    for name in
        ["a b.json", "..%2F..%2Fetc.json", "new\nline.json", "quote'\"`.json", "[x]*?.json", "-rf.json", "é😀.json"]
    {
        folder.put(name, 1, "{\"v\":\"row\"}\n");
    }
    // A link back up, a link to nowhere, a link to a file, and a pipe that nobody writes to.
    std::os::unix::fs::symlink(folder.dir.path(), folder.path("k=loop")).expect("links");
    std::os::unix::fs::symlink("/nowhere/at/all", folder.path("dead.json")).expect("links");
    std::os::unix::fs::symlink(folder.path("a b.json"), folder.path("alias.json")).expect("links");
    let pipe = std::process::Command::new("mkfifo").arg(folder.path("pipe.json")).status();
    assert!(pipe.is_ok_and(|s| s.success()), "a pipe is made");
    // All but the one that begins with a dot, which is hidden; the link counts as a file.
    assert_eq!(folder.source(&[]).next().len(), 7);
    assert_eq!(folder.source(&[("recursiveFileLookup", "true")]).next().len(), 7);
    use std::os::unix::ffi::OsStrExt;
    let odd = folder.dir.path().join("in").join(std::ffi::OsStr::from_bytes(b"\xff.json"));
    fs::write(odd, "{\"v\":\"row\"}\n").expect("writes");
    let mut reading = folder.source(&[]);
    let error = reading.source.latest(None, ReadLimit::Options, 0).expect_err("it has no name in a log");
    assert!(error.message.contains("not UTF-8"), "{}", error.message);
}

//! Files as streams and tables: json, csv, text and parquet, in a directory, a file, or what a glob matches.

mod buffers;
mod list;
mod open;
mod options;
pub(crate) mod partitions;
mod reader;
mod source;
mod split;
mod watch;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ssql_engine::connector::{
    Connector, ConnectorError, Declaration, Domain, Sink, Source, Split, StaticTable, resolve_location,
};
use ssql_ir::{
    ConnectorDesc, DataType, Field, LocationRule, OptionDesc, OptionKind, OptionScope, Schema, SchemaRule, SinkDesc,
};

pub(crate) use self::list::FileEntry;
use self::list::Lister;
pub(crate) use self::open::read_error;
use self::options::FileOptions;
pub(crate) use self::reader::FileReader;
use self::source::FileSource;
use crate::desc::{defaulted, option};
use crate::sink::FileSink;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Json,
    /// Separated values.
    Csv,
    /// Lines.
    Text,
    /// Apache Parquet.
    Parquet,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Format {
    /// As it stands after USING.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Text => "text",
            Format::Parquet => "parquet",
        }
    }
}

/// `USING json`, `csv`, `text` or `parquet`.
pub struct FileConnector {
    format: Format,
    desc: ConnectorDesc,
}

impl FileConnector {
    /// The connector of a format.
    pub fn new(format: Format) -> FileConnector {
        let (summary, schema) = match format {
            Format::Json => ("Files of JSON objects, one a line.", SchemaRule::Declared),
            Format::Csv => ("Files of separated values, one record a line.", SchemaRule::Declared),
            Format::Text => ("Text files: each line is the column `value`.", SchemaRule::Declared),
            Format::Parquet => ("Apache Parquet files.", SchemaRule::Carried),
        };
        let mut options = FileOptions::describe();
        options.extend(format_options(format));
        let desc = ConnectorDesc {
            name: format.name(),
            summary,
            stream_source: true,
            static_source: true,
            sink: Some(SinkDesc {
                append: true,
                update: false,
                complete: false,
                durable: true,
                partitioned: true,
                continuous: false,
            }),
            schema,
            location: LocationRule::Required,
            options,
        };
        FileConnector { format, desc }
    }

    fn open(&self, declaration: &Declaration) -> Result<(PathBuf, FileOptions, Lister), ConnectorError> {
        let location = location(declaration)?;
        let options = FileOptions::new(&declaration.options, &location)?;
        let lister = Lister::new(location.clone(), options.clone());
        Ok((location, options, lister))
    }

    /// The declaration with the columns that the files carry, where none were declared.
    fn reader(
        &self,
        declaration: &Declaration,
        options: &FileOptions,
        lister: &Lister,
    ) -> Result<Arc<FileReader>, ConnectorError> {
        lister.check()?;
        let mut declaration = declaration.clone();
        if declaration.schema.is_empty() && self.format == Format::Parquet {
            declaration.schema = self.carried_schema(&declaration)?;
        }
        if self.format == Format::Text {
            FileReader::check_text_columns(&declaration.schema)?;
        }
        Ok(Arc::new(FileReader::new(self.format, &declaration, options.clone(), lister.root())?))
    }
}

/// The LOCATION, without a `file:` in front and made absolute.
pub(crate) fn location(declaration: &Declaration) -> Result<PathBuf, ConnectorError> {
    let given = declaration.location.as_deref().ok_or_else(|| {
        let message = format!("`{}` needs a LOCATION", declaration.name);
        ConnectorError::new("PATH_NOT_FOUND", Domain::User, message)
    })?;
    let base = std::env::current_dir().map_err(|e| ConnectorError::io("find", Path::new("."), e))?;
    Ok(resolve_location(given, &base))
}

impl Connector for FileConnector {
    fn desc(&self) -> &ConnectorDesc {
        &self.desc
    }

    fn carried_schema(&self, declaration: &Declaration) -> Result<Schema, ConnectorError> {
        if self.format != Format::Parquet {
            return Err(self.unsupported("carry a schema", declaration));
        }
        let (location, _, mut lister) = self.open(declaration)?;
        lister.check()?;
        let mut files = lister.list(&mut |_| true)?;
        files.sort_by(|a, b| (a.mtime, &a.path).cmp(&(b.mtime, &b.path)));
        let Some(file) = files.last() else {
            let message = format!("`{}` has no Parquet files that would tell its columns", location.display());
            return Err(ConnectorError::new("UNABLE_TO_INFER_SCHEMA", Domain::User, message)
                .with_help("declare the columns: CREATE STREAM name (column TYPE, ...) USING parquet ..."));
        };
        let mut schema = crate::parquet::file_schema(&file.path)?;
        for (name, _) in partitions::values(&lister.root(), &file.path) {
            if !schema.fields.iter().any(|f| f.name.eq_ignore_ascii_case(&name)) {
                schema.fields.push(Field::new(name, DataType::String, true));
            }
        }
        Ok(schema)
    }

    fn source(&self, declaration: &Declaration) -> Result<Box<dyn Source>, ConnectorError> {
        let (location, options, lister) = self.open(declaration)?;
        let reader = self.reader(declaration, &options, &lister)?;
        Ok(Box::new(FileSource::new(location.display().to_string(), reader, options, lister)))
    }

    fn table(&self, declaration: &Declaration) -> Result<Box<dyn StaticTable>, ConnectorError> {
        let (location, options, lister) = self.open(declaration)?;
        let reader = self.reader(declaration, &options, &lister)?;
        Ok(Box::new(FileTable { location, options, reader }))
    }

    fn sink(&self, declaration: &Declaration) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(FileSink::new(self.format, location(declaration)?, declaration)?))
    }
}

/// Files as a static table: what is there when the splits are asked for.
struct FileTable {
    location: PathBuf,
    options: FileOptions,
    reader: Arc<FileReader>,
}

impl StaticTable for FileTable {
    fn schema(&self) -> &Schema {
        &self.reader.schema
    }

    fn splits(&self, projection: &[u32]) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let mut files = Lister::new(self.location.clone(), self.options.clone()).list(&mut |_| true)?;
        files.sort_by(|a, b| (a.mtime, &a.path).cmp(&(b.mtime, &b.path)));
        self.reader.splits(&files, projection)
    }
}

/// The options of one format, beside those of all file sources.
fn format_options(format: Format) -> Vec<OptionDesc> {
    use OptionKind::{Boolean, OneOf, Text};
    use OptionScope::{Both, Read, Write};
    let records = || {
        vec![
            defaulted(
                "mode",
                OneOf(&["PERMISSIVE", "DROPMALFORMED", "FAILFAST"]),
                "PERMISSIVE",
                Read,
                "What becomes of records that cannot be read: NULL, left out, or an error.",
            ),
            defaulted(
                "columnNameOfCorruptRecord",
                Text,
                "_corrupt_record",
                Read,
                "The STRING column that takes the text of bad records, if it is declared.",
            ),
            option("dateFormat", Text, Read, "Pattern of dates, such as dd.MM.yyyy."),
            option("timestampFormat", Text, Read, "Pattern of timestamps, such as dd/MM/yyyy HH:mm."),
            option("timestampNTZFormat", Text, Read, "Pattern of timestamps without time zone."),
            option("timeZone", Text, Both, "Zone of timestamps written without one; the session's by default."),
            option("encoding", Text, Read, "UTF-8; no other is read."),
            option("charset", Text, Read, "The same as encoding."),
        ]
    };
    let compression = |default| {
        let kinds: &'static [&'static str] = match format {
            Format::Parquet => &["snappy", "zstd", "gzip", "lz4", "none", "uncompressed"],
            _ => &["none", "uncompressed", "gzip", "zstd"],
        };
        defaulted("compression", OneOf(kinds), default, Write, "How files are compressed.")
    };
    let sync = defaulted(
        "sync",
        Boolean,
        "true",
        Write,
        "Waits until files are on disk; false survives the process, not the machine.",
    );
    let compact_interval = defaulted(
        "compactInterval",
        OptionKind::Integer,
        "100",
        Write,
        "Batches after which the log in `_ssql_log` is made short; no file of the output is ever removed.",
    );
    let mut options = match format {
        Format::Json => {
            let mut options = records();
            options.extend([
                defaulted("multiLine", Boolean, "false", Read, "A file is one record, or an array of records."),
                defaulted("allowSingleQuotes", Boolean, "true", Read, "Takes single quotes around strings."),
                defaulted("allowNonNumericNumbers", Boolean, "true", Read, "Takes NaN, Infinity and -Infinity."),
                defaulted("allowUnquotedFieldNames", Boolean, "false", Read, "Takes names without quotes."),
                defaulted("allowComments", Boolean, "false", Read, "Passes over comments as in Java."),
                defaulted("allowNumericLeadingZeros", Boolean, "false", Read, "Takes numbers such as 007."),
                defaulted(
                    "allowBackslashEscapingAnyCharacter",
                    Boolean,
                    "false",
                    Read,
                    "Takes any character after a backslash.",
                ),
                defaulted(
                    "allowUnquotedControlChars",
                    Boolean,
                    "false",
                    Read,
                    "Takes control characters inside strings.",
                ),
                defaulted("ignoreNullFields", Boolean, "true", Write, "Leaves out members that are NULL."),
            ]);
            options
        }
        Format::Csv => {
            let mut options = records();
            options.extend([
                defaulted("sep", Text, ",", Both, "Character between fields."),
                option("delimiter", Text, Both, "The same as sep."),
                defaulted("quote", Text, "\"", Both, "Character around fields that hold a separator; empty for none."),
                defaulted("escape", Text, "\\", Both, "Character before a quote inside a quoted field."),
                option("comment", Text, Read, "Lines that begin with it are passed over."),
                defaulted("header", Boolean, "false", Both, "The first line of a file names the columns."),
                defaulted("nullValue", Text, "", Both, "Text that stands for NULL."),
                option("emptyValue", Text, Both, "Text that stands for an empty string; written `\"\"` by default."),
                option(
                    "ignoreLeadingWhiteSpace",
                    Boolean,
                    Both,
                    "Drops blanks before values; false reading, true writing.",
                ),
                option(
                    "ignoreTrailingWhiteSpace",
                    Boolean,
                    Both,
                    "Drops blanks after values; false reading, true writing.",
                ),
                defaulted("quoteAll", Boolean, "false", Write, "Quotes all values."),
                defaulted("multiLine", Boolean, "false", Read, "Only false: a record is one line."),
            ]);
            options
        }
        Format::Text => vec![defaulted("wholetext", Boolean, "false", Read, "A file is one value.")],
        Format::Parquet => Vec::new(),
    };
    options.push(compression(if format == Format::Parquet { "snappy" } else { "none" }));
    options.push(sync);
    options.push(compact_interval);
    options
}

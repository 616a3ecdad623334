//! Data types, fields and schemas: the dialect's types, named as Spark names them.

use std::fmt;

/// The fields of a day-time interval, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DayTimeField {
    /// Days.
    Day,
    /// Hours.
    Hour,
    /// Minutes.
    Minute,
    /// Seconds with their fraction.
    Second,
}

impl DayTimeField {
    /// All fields, largest first.
    pub const ALL: [DayTimeField; 4] =
        [DayTimeField::Day, DayTimeField::Hour, DayTimeField::Minute, DayTimeField::Second];

    /// The SQL word: `DAY` to `SECOND`.
    pub fn name(self) -> &'static str {
        match self {
            DayTimeField::Day => "DAY",
            DayTimeField::Hour => "HOUR",
            DayTimeField::Minute => "MINUTE",
            DayTimeField::Second => "SECOND",
        }
    }

    /// The field of that SQL word, in any case.
    pub fn of(word: &str) -> Option<DayTimeField> {
        DayTimeField::ALL.into_iter().find(|f| f.name().eq_ignore_ascii_case(word))
    }

    /// Microseconds of one.
    pub fn micros(self) -> i64 {
        match self {
            DayTimeField::Day => 86_400_000_000,
            DayTimeField::Hour => 3_600_000_000,
            DayTimeField::Minute => 60_000_000,
            DayTimeField::Second => 1_000_000,
        }
    }
}

/// The fields of a year-month interval, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum YearMonthField {
    /// Years.
    Year,
    /// Months.
    Month,
}

impl YearMonthField {
    /// The SQL word: `YEAR` or `MONTH`.
    pub fn name(self) -> &'static str {
        match self {
            YearMonthField::Year => "YEAR",
            YearMonthField::Month => "MONTH",
        }
    }

    /// The field of that SQL word, in any case.
    pub fn of(word: &str) -> Option<YearMonthField> {
        [YearMonthField::Year, YearMonthField::Month].into_iter().find(|f| f.name().eq_ignore_ascii_case(word))
    }

    /// Months of one.
    pub fn months(self) -> i32 {
        match self {
            YearMonthField::Year => 12,
            YearMonthField::Month => 1,
        }
    }
}

/// A type of the dialect.
///
/// Timestamps count microseconds since 1970-01-01 00:00:00 (UTC for [`DataType::Timestamp`], wall clock for
/// [`DataType::TimestampNtz`]); dates count days since then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DataType {
    /// The type of a bare NULL (Spark's VOID).
    Null,
    /// True or false.
    Boolean,
    /// TINYINT, 8-bit signed.
    Int8,
    /// SMALLINT, 16-bit signed.
    Int16,
    /// INT, 32-bit signed.
    Int32,
    /// BIGINT, 64-bit signed.
    Int64,
    /// FLOAT, IEEE 754 single.
    Float32,
    /// DOUBLE, IEEE 754 double.
    Float64,
    /// DECIMAL(precision, scale), `1 <= precision <= 38`, `0 <= scale <= precision`.
    Decimal(u8, u8),
    /// UTF-8 text.
    String,
    /// Bytes.
    Binary,
    /// A calendar day.
    Date,
    /// An instant, in microseconds.
    Timestamp,
    /// A wall-clock reading without a zone, in microseconds.
    TimestampNtz,
    /// A day-time interval, in microseconds, with its first and last field (`first <= last`). The fields decide how it
    /// prints and what a cast keeps; the values of all of them compare and add as one.
    DayTimeInterval(DayTimeField, DayTimeField),
    /// A year-month interval, in months, with its first and last field (`first <= last`).
    YearMonthInterval(YearMonthField, YearMonthField),
    /// `ARRAY<element>`; the field says whether elements may be NULL.
    Array(Box<Field>),
    /// `MAP<key, value>`; keys are never NULL, the value field says whether values may be.
    Map(Box<Field>, Box<Field>),
    /// `STRUCT<fields>`.
    Struct(Vec<Field>),
}

impl DataType {
    /// INTERVAL DAY TO SECOND: every field of a day-time interval.
    pub const DAY_TO_SECOND: DataType = DataType::DayTimeInterval(DayTimeField::Day, DayTimeField::Second);
    /// INTERVAL YEAR TO MONTH: both fields of a year-month interval.
    pub const YEAR_TO_MONTH: DataType = DataType::YearMonthInterval(YearMonthField::Year, YearMonthField::Month);

    /// The interval type of those SQL words: `interval("DAY", Some("SECOND"))` for INTERVAL DAY TO SECOND,
    /// `interval("HOUR", None)` for INTERVAL HOUR; `None` where they name none.
    pub fn interval(first: &str, last: Option<&str>) -> Option<DataType> {
        let last = last.unwrap_or(first);
        if let (Some(a), Some(b)) = (DayTimeField::of(first), DayTimeField::of(last)) {
            return (a <= b).then_some(DataType::DayTimeInterval(a, b));
        }
        let (a, b) = (YearMonthField::of(first)?, YearMonthField::of(last)?);
        (a <= b).then_some(DataType::YearMonthInterval(a, b))
    }

    /// The interval type that holds the fields of both; `None` unless both are intervals of one kind.
    pub fn wider_interval(&self, other: &DataType) -> Option<DataType> {
        match (self, other) {
            (DataType::DayTimeInterval(a, b), DataType::DayTimeInterval(c, d)) => {
                Some(DataType::DayTimeInterval(*a.min(c), *b.max(d)))
            }
            (DataType::YearMonthInterval(a, b), DataType::YearMonthInterval(c, d)) => {
                Some(DataType::YearMonthInterval(*a.min(c), *b.max(d)))
            }
            _ => None,
        }
    }

    /// `ARRAY<element>` with elements that may be NULL.
    pub fn array(element: DataType) -> DataType {
        DataType::Array(Box::new(Field::new("element", element, true)))
    }

    /// `MAP<key, value>` with values that may be NULL.
    pub fn map(key: DataType, value: DataType) -> DataType {
        DataType::Map(Box::new(Field::new("key", key, false)), Box::new(Field::new("value", value, true)))
    }

    /// Whether values of `other` are values of this type as they stand: the same type, but members may be NULL here
    /// that never are there.
    pub fn holds(&self, other: &DataType) -> bool {
        let field = |a: &Field, b: &Field| (a.nullable || !b.nullable) && a.data_type.holds(&b.data_type);
        match (self, other) {
            (DataType::Array(a), DataType::Array(b)) => field(a, b),
            (DataType::Map(ak, av), DataType::Map(bk, bv)) => field(ak, bk) && field(av, bv),
            (DataType::Struct(a), DataType::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name && field(a, b))
            }
            _ => self == other,
        }
    }

    /// TINYINT to BIGINT.
    pub fn is_integer(&self) -> bool {
        matches!(self, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64)
    }

    /// FLOAT or DOUBLE.
    pub fn is_float(&self) -> bool {
        matches!(self, DataType::Float32 | DataType::Float64)
    }

    /// Integers, floats and decimals.
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || self.is_float() || matches!(self, DataType::Decimal(..))
    }

    /// ARRAY, MAP or STRUCT.
    pub fn is_nested(&self) -> bool {
        matches!(self, DataType::Array(_) | DataType::Map(..) | DataType::Struct(_))
    }

    /// Width in bytes of one value in a kernel's column or state row; `None` for nested types and NULL.
    /// Strings and binaries are 16-byte views.
    pub fn fixed_width(&self) -> Option<usize> {
        Some(match self {
            DataType::Boolean | DataType::Int8 => 1,
            DataType::Int16 => 2,
            DataType::Int32 | DataType::Float32 | DataType::Date | DataType::YearMonthInterval(..) => 4,
            DataType::Int64
            | DataType::Float64
            | DataType::Timestamp
            | DataType::TimestampNtz
            | DataType::DayTimeInterval(..) => 8,
            DataType::Decimal(..) | DataType::String | DataType::Binary => 16,
            DataType::Null | DataType::Array(_) | DataType::Map(..) | DataType::Struct(_) => return None,
        })
    }
}

/// Prints the type as SQL writes it: `BIGINT`, `DECIMAL(10,2)`, `ARRAY<STRING>`, `STRUCT<a: INT>`.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Null => f.write_str("VOID"),
            DataType::Boolean => f.write_str("BOOLEAN"),
            DataType::Int8 => f.write_str("TINYINT"),
            DataType::Int16 => f.write_str("SMALLINT"),
            DataType::Int32 => f.write_str("INT"),
            DataType::Int64 => f.write_str("BIGINT"),
            DataType::Float32 => f.write_str("FLOAT"),
            DataType::Float64 => f.write_str("DOUBLE"),
            DataType::Decimal(p, s) => write!(f, "DECIMAL({p},{s})"),
            DataType::String => f.write_str("STRING"),
            DataType::Binary => f.write_str("BINARY"),
            DataType::Date => f.write_str("DATE"),
            DataType::Timestamp => f.write_str("TIMESTAMP"),
            DataType::TimestampNtz => f.write_str("TIMESTAMP_NTZ"),
            DataType::DayTimeInterval(a, b) if a == b => write!(f, "INTERVAL {}", a.name()),
            DataType::DayTimeInterval(a, b) => write!(f, "INTERVAL {} TO {}", a.name(), b.name()),
            DataType::YearMonthInterval(a, b) if a == b => write!(f, "INTERVAL {}", a.name()),
            DataType::YearMonthInterval(a, b) => write!(f, "INTERVAL {} TO {}", a.name(), b.name()),
            DataType::Array(e) => write!(f, "ARRAY<{}>", e.data_type),
            DataType::Map(k, v) => write!(f, "MAP<{}, {}>", k.data_type, v.data_type),
            DataType::Struct(fields) => {
                f.write_str("STRUCT<")?;
                for (i, field) in fields.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{}: {}", field.name, field.data_type)?;
                    if !field.nullable {
                        f.write_str(" NOT NULL")?;
                    }
                }
                f.write_str(">")
            }
        }
    }
}

/// A named, typed column or struct member.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// Name as the user wrote it; compared case-insensitively by the binder only.
    pub name: String,
    /// Type of the values.
    pub data_type: DataType,
    /// Whether NULL may occur.
    pub nullable: bool,
}

impl Field {
    /// A field of that name, type and nullability.
    pub fn new(name: impl Into<String>, data_type: DataType, nullable: bool) -> Field {
        Field { name: name.into(), data_type, nullable }
    }
}

/// The columns of a relation or of an edge between operators, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Schema {
    /// The columns.
    pub fields: Vec<Field>,
}

impl Schema {
    /// A schema of these fields.
    pub fn new(fields: Vec<Field>) -> Schema {
        Schema { fields }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

/// What the rows on an edge mean for the table they describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// Each row is new and never taken back.
    Append,
    /// A row replaces the earlier row with the same key.
    Upsert,
    /// The rows are the whole table and replace all earlier rows.
    Replace,
    /// Rows carry weights and may take earlier rows back. No operator produces it yet; the type system has its seat.
    Retract,
}

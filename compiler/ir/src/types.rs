//! Data types, fields and schemas: the dialect's types, named as Spark names them.

use std::fmt;

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
    /// INTERVAL DAY TO SECOND, in microseconds.
    DayTimeInterval,
    /// INTERVAL YEAR TO MONTH, in months.
    YearMonthInterval,
    /// `ARRAY<element>`; the field says whether elements may be NULL.
    Array(Box<Field>),
    /// `MAP<key, value>`; keys are never NULL, the value field says whether values may be.
    Map(Box<Field>, Box<Field>),
    /// `STRUCT<fields>`.
    Struct(Vec<Field>),
}

impl DataType {
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
            DataType::Int32 | DataType::Float32 | DataType::Date | DataType::YearMonthInterval => 4,
            DataType::Int64
            | DataType::Float64
            | DataType::Timestamp
            | DataType::TimestampNtz
            | DataType::DayTimeInterval => 8,
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
            DataType::DayTimeInterval => f.write_str("INTERVAL DAY TO SECOND"),
            DataType::YearMonthInterval => f.write_str("INTERVAL YEAR TO MONTH"),
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

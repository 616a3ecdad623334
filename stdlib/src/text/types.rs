//! Types and schemas from text: `BIGINT`, `struct<a: int, b: array<string>>`, `a INT, b STRING`.

use ssql_ir::{DataType, Field, Schema};

/// Reads a type as SQL and Spark's `typeof` write it. `None` if it is none.
pub fn parse_data_type(s: &str) -> Option<DataType> {
    let mut p = Parser { rest: s };
    let t = p.data_type()?;
    p.at_end().then_some(t)
}

/// Reads a schema: fields `name type [NOT NULL] [COMMENT '...']` or `name: type`, comma-separated, or one struct type.
pub fn parse_schema(s: &str) -> Option<Schema> {
    if let Some(DataType::Struct(fields)) = parse_data_type(s) {
        return Some(Schema::new(fields));
    }
    let mut p = Parser { rest: s };
    let fields = p.fields()?;
    p.at_end().then(|| Schema::new(fields))
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn at_end(&mut self) -> bool {
        self.skip();
        self.rest.is_empty()
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A bare word of letters, digits and underscores.
    fn word(&mut self) -> Option<&'a str> {
        self.skip();
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        if end == 0 {
            return None;
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(word)
    }

    /// The next word if it is that one, in any case.
    fn keyword(&mut self, wanted: &str) -> bool {
        let before = self.rest;
        match self.word() {
            Some(word) if word.eq_ignore_ascii_case(wanted) => true,
            _ => {
                self.rest = before;
                false
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        self.skip();
        let Some(rest) = self.rest.strip_prefix('`') else { return self.word().map(str::to_owned) };
        // A backtick inside is doubled.
        let mut name = String::new();
        let mut chars = rest.char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            if c != '`' {
                name.push(c);
            } else if chars.peek().is_some_and(|(_, c)| *c == '`') {
                chars.next();
                name.push('`');
            } else {
                self.rest = &rest[i + 1..];
                return Some(name);
            }
        }
        None
    }

    fn number(&mut self) -> Option<u32> {
        self.word()?.parse().ok()
    }

    fn fields(&mut self) -> Option<Vec<Field>> {
        let mut fields = Vec::new();
        loop {
            let name = self.name()?;
            self.eat(':');
            let data_type = self.data_type()?;
            let nullable = if self.keyword("not") {
                if !self.keyword("null") {
                    return None;
                }
                false
            } else {
                true
            };
            if self.keyword("comment") {
                self.skip();
                let text = self.rest.strip_prefix('\'')?;
                self.rest = &text[text.find('\'')? + 1..];
            }
            fields.push(Field::new(name, data_type, nullable));
            if !self.eat(',') {
                return Some(fields);
            }
        }
    }

    fn data_type(&mut self) -> Option<DataType> {
        let word = self.word()?.to_ascii_lowercase();
        Some(match word.as_str() {
            "void" | "null" => DataType::Null,
            "boolean" | "bool" => DataType::Boolean,
            "tinyint" | "byte" => DataType::Int8,
            "smallint" | "short" => DataType::Int16,
            "int" | "integer" => DataType::Int32,
            "bigint" | "long" => DataType::Int64,
            "float" | "real" => DataType::Float32,
            "double" => DataType::Float64,
            "decimal" | "dec" | "numeric" => {
                let (mut p, mut s) = (10, 0);
                if self.eat('(') {
                    p = self.number()?;
                    if self.eat(',') {
                        s = self.number()?;
                    }
                    if !self.eat(')') {
                        return None;
                    }
                }
                if !(1..=38).contains(&p) || s > p {
                    return None;
                }
                DataType::Decimal(p as u8, s as u8)
            }
            "string" => DataType::String,
            "varchar" | "char" | "character" => {
                if self.eat('(') && !(self.number().is_some() && self.eat(')')) {
                    return None;
                }
                DataType::String
            }
            "binary" => DataType::Binary,
            "date" => DataType::Date,
            "timestamp" | "timestamp_ltz" => DataType::Timestamp,
            "timestamp_ntz" => DataType::TimestampNtz,
            "interval" => self.interval()?,
            "array" => {
                let element = self.one_in_brackets()?;
                DataType::array(element)
            }
            "map" => {
                if !self.eat('<') {
                    return None;
                }
                let key = self.data_type()?;
                if !self.eat(',') {
                    return None;
                }
                let value = self.data_type()?;
                if !self.eat('>') {
                    return None;
                }
                DataType::map(key, value)
            }
            "struct" => {
                if !self.eat('<') {
                    return None;
                }
                if self.eat('>') {
                    return Some(DataType::Struct(vec![]));
                }
                let fields = self.fields()?;
                if !self.eat('>') {
                    return None;
                }
                DataType::Struct(fields)
            }
            _ => return None,
        })
    }

    fn one_in_brackets(&mut self) -> Option<DataType> {
        if !self.eat('<') {
            return None;
        }
        let t = self.data_type()?;
        self.eat('>').then_some(t)
    }

    /// `DAY [TO SECOND]`, `YEAR [TO MONTH]`.
    fn interval(&mut self) -> Option<DataType> {
        let first = self.word()?.to_owned();
        let last = if self.keyword("to") { Some(self.word()?) } else { None };
        DataType::interval(&first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_read_back_as_they_print() {
        for text in
            ["BIGINT", "DECIMAL(10,2)", "ARRAY<STRING>", "MAP<INT, ARRAY<DATE>>", "STRUCT<a: INT, b: STRING NOT NULL>"]
        {
            assert_eq!(parse_data_type(text).map(|t| t.to_string()).as_deref(), Some(text));
        }
        assert_eq!(parse_data_type("interval day to second"), Some(DataType::DAY_TO_SECOND));
        assert_eq!(parse_data_type("decimal(39,0)"), None);
        assert_eq!(parse_data_type("nosuchtype"), None);
        assert_eq!(parse_data_type("int int"), None);
    }

    #[test]
    fn schemas_take_ddl_and_structs() {
        let schema = parse_schema("a INT, `b c` STRING NOT NULL COMMENT 'x', d ARRAY<INT>").expect("a schema");
        assert_eq!(schema.fields[1], Field::new("b c", DataType::String, false));
        assert_eq!(parse_schema("struct<a: int>"), parse_schema("a int"));
        assert_eq!(parse_schema(""), None);
    }
}

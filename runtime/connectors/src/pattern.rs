//! Date and time patterns (`yyyy-MM-dd HH:mm:ss`), the part of Java's DateTimeFormatter that Spark's options use.

use jiff::tz::TimeZone;
use ssql_stdlib::time::{checked_date, parse_zone, to_instant};

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// A field: letter and how often it stands.
    Field(u8, usize),
    Optional(Vec<Item>),
}

/// Month names as patterns write them.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// What was read of a text.
#[derive(Debug, Clone)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    half_day: Option<i64>,
    minute: i64,
    second: i64,
    micros: i64,
    zone: Option<TimeZone>,
}

impl Pattern {
    /// Compiles a pattern; the error names the letter that is not understood.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let mut rest = text;
        let items = compile(&mut rest, 0)?;
        Ok(Pattern { items })
    }

    /// Days since 1970-01-01.
    pub fn date(&self, text: &str) -> Option<i32> {
        let parts = self.parse(text)?;
        checked_date(parts.year, parts.month, parts.day)
    }

    /// Microseconds since 1970-01-01 00:00:00 UTC; a text without a zone is read in `zone`.
    pub fn instant(&self, text: &str, zone: &TimeZone) -> Option<i64> {
        let parts = self.parse(text)?;
        let local = parts.local()?;
        Some(to_instant(parts.zone.as_ref().unwrap_or(zone), local))
    }

    /// Wall-clock microseconds.
    pub fn wall_clock(&self, text: &str) -> Option<i64> {
        self.parse(text)?.local()
    }

    fn parse(&self, text: &str) -> Option<Parts> {
        let mut parts = Parts {
            year: 1970,
            month: 1,
            day: 1,
            hour: 0,
            half_day: None,
            minute: 0,
            second: 0,
            micros: 0,
            zone: None,
        };
        let rest = parse(&self.items, text, &mut parts)?;
        rest.is_empty().then_some(parts)
    }
}

impl Parts {
    fn local(&self) -> Option<i64> {
        let days = i64::from(checked_date(self.year, self.month, self.day)?);
        let hour = match self.half_day {
            Some(half) if (1..=12).contains(&self.hour) => self.hour % 12 + 12 * half,
            Some(_) => return None,
            None => self.hour,
        };
        let valid = (0..24).contains(&hour) && (0..60).contains(&self.minute) && (0..60).contains(&self.second);
        valid.then_some(((days * 24 + hour) * 60 + self.minute) * 60_000_000 + self.second * 1_000_000 + self.micros)
    }
}

fn compile(rest: &mut &str, depth: usize) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    while let Some(c) = rest.chars().next() {
        match c {
            '\'' => {
                let body = &rest[1..];
                let end = body.find('\'').ok_or("a quote is not closed")?;
                // Two quotes in a row are one quote.
                items.push(Item::Literal(if end == 0 { "'".to_string() } else { body[..end].to_string() }));
                *rest = &body[end + 1..];
            }
            '[' if depth < 8 => {
                *rest = &rest[1..];
                items.push(Item::Optional(compile(rest, depth + 1)?));
            }
            ']' if depth > 0 => {
                *rest = &rest[1..];
                return Ok(items);
            }
            'a'..='z' | 'A'..='Z' => {
                let count = rest.chars().take_while(|d| *d == c).count();
                let known = match c {
                    'y' | 'u' => count <= 6,
                    'M' | 'L' => count <= 4,
                    'd' | 'H' | 'h' | 'm' | 's' => count <= 2,
                    'S' => count <= 9,
                    'a' => count == 1,
                    'X' | 'x' | 'Z' => count <= 3,
                    'z' | 'V' => count <= 4,
                    _ => false,
                };
                if !known {
                    return Err(format!("`{}` is not understood", &rest[..count]));
                }
                items.push(Item::Field(c as u8, count));
                *rest = &rest[count..];
            }
            '[' | ']' | '{' | '}' | '#' => return Err(format!("`{c}` is not allowed here")),
            _ => {
                items.push(Item::Literal(c.to_string()));
                *rest = &rest[c.len_utf8()..];
            }
        }
    }
    if depth > 0 { Err("a `[` is not closed".to_string()) } else { Ok(items) }
}

fn parse<'t>(items: &[Item], mut text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    for (i, item) in items.iter().enumerate() {
        text = match item {
            Item::Literal(literal) => text.strip_prefix(literal.as_str())?,
            Item::Optional(inner) => {
                let before = parts.clone();
                match parse(inner, text, parts) {
                    Some(rest) => rest,
                    None => {
                        *parts = before;
                        text
                    }
                }
            }
            Item::Field(letter, count) => {
                // A number right before another number has exactly its letters' width.
                let adjacent =
                    matches!(items.get(i + 1), Some(Item::Field(b'y' | b'M' | b'd' | b'H' | b'm' | b's' | b'S', _)));
                field(*letter, *count, adjacent, text, parts)?
            }
        };
    }
    Some(text)
}

fn field<'t>(letter: u8, count: usize, adjacent: bool, text: &'t str, parts: &mut Parts) -> Option<&'t str> {
    let digits = |least: usize, most: usize| {
        let n = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        (n >= least).then(|| text.split_at(n)).and_then(|(d, rest)| Some((d.parse::<i64>().ok()?, rest)))
    };
    let two = || digits(count, if count == 1 && !adjacent { 2 } else { count.max(1) });
    let (target, (value, rest)) = match letter {
        b'y' | b'u' if count == 2 => {
            let (value, rest) = digits(2, 2)?;
            (&mut parts.year, (2000 + value, rest))
        }
        b'y' | b'u' => (&mut parts.year, digits(count.min(4), if adjacent { count } else { 6 })?),
        b'M' | b'L' if count >= 3 => {
            let named = MONTHS.iter().enumerate().find_map(|(i, name)| {
                let name = if count == 3 { &name[..3] } else { name };
                text.strip_prefix(name).map(|rest| (i as i64 + 1, rest))
            })?;
            (&mut parts.month, named)
        }
        b'M' | b'L' => (&mut parts.month, two()?),
        b'd' => (&mut parts.day, two()?),
        b'H' | b'h' => (&mut parts.hour, two()?),
        b'm' => (&mut parts.minute, two()?),
        b's' => (&mut parts.second, two()?),
        b'S' => {
            let n = text.bytes().take(9).take_while(u8::is_ascii_digit).count();
            if n == 0 || (adjacent && n < count) {
                return None;
            }
            let n = n.min(if adjacent { count } else { 9 });
            let nanos = text[..n].parse::<i64>().ok()? * 10i64.pow(9 - n as u32);
            parts.micros = nanos / 1000;
            return Some(&text[n..]);
        }
        b'a' => {
            let (half, rest) = match text.get(..2)? {
                t if t.eq_ignore_ascii_case("AM") => (0, &text[2..]),
                t if t.eq_ignore_ascii_case("PM") => (1, &text[2..]),
                _ => return None,
            };
            parts.half_day = Some(half);
            return Some(rest);
        }
        _ => {
            let end = match letter {
                b'X' | b'x' | b'Z' => offset_length(text)?,
                _ => text.find(|c: char| !(c.is_ascii_alphanumeric() || "/_+-:".contains(c))).unwrap_or(text.len()),
            };
            parts.zone = Some(parse_zone(&text[..end])?);
            return Some(&text[end..]);
        }
    };
    *target = value;
    Some(rest)
}

/// Length of `Z`, `+01`, `+0100` or `+01:00` at the start.
fn offset_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'Z' => Some(1),
        b'+' | b'-' => Some(1 + bytes[1..].iter().take(8).take_while(|b| b.is_ascii_digit() || **b == b':').count()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_what_java_reads() {
        let zone = TimeZone::UTC;
        let read = |p: &str, t: &str| Pattern::new(p).expect("a good pattern").instant(t, &zone);
        assert_eq!(read("dd/MM/yyyy HH:mm", "15/01/2024 10:30"), Some(1_705_314_600_000_000));
        assert_eq!(read("dd/MM/yyyy HH:mm", "2024-01-15 10:30"), None);
        assert_eq!(read("yyyyMMddHHmmss", "20240115103000"), Some(1_705_314_600_000_000));
        assert_eq!(read("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-15T10:30:00"), Some(1_705_314_600_000_000));
        assert_eq!(read("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-15T10:30:00.5Z"), Some(1_705_314_600_500_000));
        assert_eq!(read("yyyy-MM-dd'T'HH:mm:ssXXX", "2024-01-15T12:30:00+02:00"), Some(1_705_314_600_000_000));
        assert_eq!(read("d MMM yyyy h:mm a", "15 Jan 2024 10:30 AM"), Some(1_705_314_600_000_000));
        assert_eq!(Pattern::new("dd.MM.yyyy").map(|p| p.date("15.01.2024")), Ok(Some(19_737)));
        assert_eq!(Pattern::new("dd.MM.yyyy").map(|p| p.date("30.02.2024")), Ok(None));
        assert!(Pattern::new("qq").is_err() && Pattern::new("[yyyy").is_err() && Pattern::new("'x").is_err());
    }
}

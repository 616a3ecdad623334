//! Patterns of dates and times with the letters of Java's `DateTimeFormatter`, as Spark takes them: `yyyy-MM-dd HH:mm:ss`.
//!
//! A pattern is compiled once into [`Item`]s; [`DatePattern::write`] prints by them and [`DatePattern::parse`] reads by them.
//! Week-based letters are refused, and for reading also those that only describe a date (`E`, `F`, `Q`).

mod format;
mod parse;
mod zone_names;

pub use parse::ParsedTime;

use crate::error::EvalError;

/// A number that a pattern shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// Proleptic year, `y` without an era.
    Year,
    /// Year within its era, `y` beside `G`.
    YearOfEra,
    Quarter,
    Month,
    Day,
    DayOfYear,
    /// Days 1-7 of the month are in week 1; `F`.
    AlignedWeek,
    /// 0 to 23, `H`.
    Hour,
    /// 1 to 24, `k`.
    ClockHour,
    /// 0 to 11, `K`.
    HourOfHalf,
    /// 1 to 12, `h`.
    ClockHourOfHalf,
    Minute,
    Second,
}

/// How a number's sign is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `-` where it is negative.
    Normal,
    /// As normal, and `+` where it has more digits than the pattern letters.
    ExceedsPad,
    /// Neither.
    Never,
}

/// Something that is shown as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Era,
    Quarter,
    Month,
    DayOfWeek,
    HalfOfDay,
}

/// The form of an offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OffsetForm {
    /// Minutes always stand; else only if not zero.
    minutes: bool,
    /// Seconds stand if not zero.
    seconds: bool,
    colon: bool,
    /// What stands for no offset.
    zero: &'static str,
}

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq)]
enum Item {
    Literal(String),
    Number {
        field: Field,
        min: usize,
        max: usize,
        sign: Sign,
        /// Digits of the fixed-width numbers right behind it, which it must leave to them.
        reserved: usize,
    },
    /// The last two digits of a year, 2000 to 2099.
    TwoDigitYear,
    /// Digits of the second's fraction.
    Fraction {
        min: usize,
        max: usize,
    },
    Word {
        text: Text,
        full: bool,
    },
    Offset(OffsetForm),
    /// `GMT+1` or `GMT+01:00`.
    LocalizedOffset {
        full: bool,
    },
    /// Region or offset, `VV`.
    ZoneId,
    ZoneName {
        full: bool,
    },
    /// `[...]`: read if it is there, always shown.
    Optional(Vec<Item>),
}

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct DatePattern {
    items: Vec<Item>,
}

/// Why a pattern is refused, before it is known whether the old formatter of Spark 2 would have taken it.
enum Refused {
    WeekBased(char),
    Character(char),
    Length(String),
    Other,
}

/// Letters of Spark 2's formatter. A pattern that it took and the present one does not has a condition of its own.
const OLD_LETTERS: &str = "GyYMLwWDdFEuaHkKhmsSzZX";

impl DatePattern {
    /// Compiles a pattern for printing.
    pub fn for_printing(pattern: &str) -> Result<DatePattern, EvalError> {
        compile(pattern, false).map_err(|why| refusal(pattern, why))
    }

    /// Compiles a pattern for reading.
    pub fn for_reading(pattern: &str) -> Result<DatePattern, EvalError> {
        compile(pattern, true).map_err(|why| refusal(pattern, why))
    }
}

fn refusal(pattern: &str, why: Refused) -> EvalError {
    const HELP: &str = "the letters are those of Java's DateTimeFormatter without the week-based ones: \
                        G y M L d D Q q E F a h K k H m s S V z O X x Z";
    let letters = unquoted(pattern);
    let (condition, message) = if letters.as_ref().is_some_and(|l| l.iter().all(|c| OLD_LETTERS.contains(*c))) {
        (
            "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION",
            format!("The datetime pattern '{pattern}' is not recognised."),
        )
    } else {
        match why {
            Refused::WeekBased(c) => (
                "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_WEEK_BASED_PATTERN",
                format!("The datetime pattern '{pattern}' has the week-based letter `{c}`, which is not supported."),
            ),
            Refused::Character(c) => (
                "INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER",
                format!("The datetime pattern '{pattern}' has the letter `{c}`, which is not allowed here."),
            ),
            Refused::Length(run) => (
                "INVALID_DATETIME_PATTERN.LENGTH",
                format!("The datetime pattern '{pattern}' repeats a letter too often: `{run}`."),
            ),
            Refused::Other => (
                "INVALID_DATETIME_PATTERN.WITH_SUGGESTION",
                format!("The datetime pattern '{pattern}' is not recognised."),
            ),
        }
    };
    EvalError::new(condition, message).with_help(HELP)
}

/// The letters outside of quotes; `None` if a quote is not closed.
fn unquoted(pattern: &str) -> Option<Vec<char>> {
    let mut quoted = false;
    let mut letters = vec![];
    for c in pattern.chars() {
        if c == '\'' {
            quoted = !quoted;
        } else if !quoted && c.is_ascii_alphabetic() {
            letters.push(c);
        }
    }
    (!quoted).then_some(letters)
}

/// The items of one bracket level, with the index of the number that adjacent numbers reserve digits of.
#[derive(Default)]
struct Level {
    items: Vec<Item>,
    active: Option<usize>,
}

impl Level {
    fn push(&mut self, item: Item) {
        self.items.push(item);
        self.active = None;
    }

    /// Numbers that stand side by side: each that has a fixed width takes its digits away from the first.
    fn push_number(&mut self, item: Item, fixed_width: Option<usize>) {
        match (self.active, fixed_width) {
            (Some(first), Some(width)) => {
                if let Item::Number { reserved, .. } = &mut self.items[first] {
                    *reserved += width;
                }
                self.items.push(item);
            }
            _ => {
                self.items.push(item);
                self.active = Some(self.items.len() - 1);
            }
        }
    }

    fn literal(&mut self, c: char) {
        match self.items.last_mut() {
            Some(Item::Literal(text)) => text.push(c),
            _ => self.items.push(Item::Literal(c.into())),
        }
        self.active = None;
    }
}

fn compile(pattern: &str, reading: bool) -> Result<DatePattern, Refused> {
    let letters = unquoted(pattern).ok_or(Refused::Other)?;
    if let Some(c) = letters.iter().find(|c| "YWwuec".contains(**c)) {
        return Err(Refused::WeekBased(*c));
    }
    if let Some(c) = letters.iter().find(|c| "ABnNp".contains(**c) || (reading && "EFqQ".contains(**c))) {
        return Err(Refused::Character(*c));
    }
    let era = letters.contains(&'G');
    let mut levels = vec![Level::default()];
    let chars: Vec<char> = pattern.chars().collect();
    let mut i = 0;
    while i < chars.len() {
        let c = chars[i];
        let run = chars[i..].iter().take_while(|d| **d == c).count();
        let level = levels.last_mut().expect("the outermost level is never closed");
        match c {
            '\'' => {
                i += 1;
                // Two quotes are one, inside of quotes and outside.
                if chars.get(i) == Some(&'\'') {
                    level.literal('\'');
                    i += 1;
                    continue;
                }
                loop {
                    match (chars.get(i), chars.get(i + 1)) {
                        (Some('\''), Some('\'')) => {
                            level.literal('\'');
                            i += 2;
                        }
                        (Some('\''), _) => break,
                        (Some(c), _) => {
                            level.literal(*c);
                            i += 1;
                        }
                        (None, _) => return Err(Refused::Other),
                    }
                }
                i += 1;
            }
            '[' => {
                levels.push(Level::default());
                i += 1;
            }
            ']' => {
                close(&mut levels)?;
                i += 1;
            }
            '{' | '}' | '#' => return Err(Refused::Other),
            c if c.is_ascii_alphabetic() => {
                letter(level, c, run, era, reading)?;
                i += run;
            }
            c => {
                level.literal(c);
                i += 1;
            }
        }
    }
    // A bracket that is not closed ends with the pattern.
    while levels.len() > 1 {
        close(&mut levels)?;
    }
    Ok(DatePattern { items: levels.pop().map(|l| l.items).unwrap_or_default() })
}

fn close(levels: &mut Vec<Level>) -> Result<(), Refused> {
    let inner = levels.pop().filter(|_| !levels.is_empty()).ok_or(Refused::Other)?;
    let outer = levels.last_mut().ok_or(Refused::Other)?;
    if !inner.items.is_empty() {
        outer.push(Item::Optional(inner.items));
    }
    outer.active = None;
    Ok(())
}

/// Appends the item of `n` letters `c`.
fn letter(level: &mut Level, c: char, n: usize, era: bool, reading: bool) -> Result<(), Refused> {
    let too_long = || Refused::Length(c.to_string().repeat(n));
    let number = |level: &mut Level, field: Field, min: usize, max: usize, sign: Sign| {
        let fixed = (min == max && sign == Sign::Never).then_some(min);
        level.push_number(Item::Number { field, min, max, sign, reserved: 0 }, fixed);
    };
    let one_or_two = |level: &mut Level, field: Field| match n {
        1 => {
            number(level, field, 1, 19, Sign::Normal);
            Ok(())
        }
        2 => {
            number(level, field, 2, 2, Sign::Never);
            Ok(())
        }
        _ => Err(Refused::Other),
    };
    let word = |level: &mut Level, text: Text, full: bool| level.push(Item::Word { text, full });
    match c {
        'y' => {
            let field = if era { Field::YearOfEra } else { Field::Year };
            match n {
                1 => number(level, field, 1, 19, Sign::Normal),
                2 => level.push_number(Item::TwoDigitYear, Some(2)),
                3 => number(level, field, 3, 19, Sign::Normal),
                4..=6 => number(level, field, n, 19, Sign::ExceedsPad),
                _ => return Err(too_long()),
            }
        }
        'M' | 'L' | 'Q' | 'q' => {
            let (field, text) =
                if matches!(c, 'M' | 'L') { (Field::Month, Text::Month) } else { (Field::Quarter, Text::Quarter) };
            match n {
                1 | 2 => one_or_two(level, field)?,
                3 => word(level, text, false),
                4 => word(level, text, true),
                _ => return Err(too_long()),
            }
        }
        'E' | 'G' => {
            let text = if c == 'E' { Text::DayOfWeek } else { Text::Era };
            match n {
                1..=3 => word(level, text, false),
                4 => word(level, text, true),
                _ => return Err(too_long()),
            }
        }
        'a' if n == 1 => word(level, Text::HalfOfDay, false),
        'd' => one_or_two(level, Field::Day)?,
        'H' => one_or_two(level, Field::Hour)?,
        'k' => one_or_two(level, Field::ClockHour)?,
        'K' => one_or_two(level, Field::HourOfHalf)?,
        'h' => one_or_two(level, Field::ClockHourOfHalf)?,
        'm' => one_or_two(level, Field::Minute)?,
        's' => one_or_two(level, Field::Second)?,
        'F' if n == 1 => number(level, Field::AlignedWeek, 1, 19, Sign::Normal),
        'D' => match n {
            1 => number(level, Field::DayOfYear, 1, 19, Sign::Normal),
            2 | 3 => number(level, Field::DayOfYear, n, 3, Sign::Never),
            _ => return Err(Refused::Other),
        },
        // Any number of digits up to `n` is read.
        'S' if n <= 9 => {
            let min = if reading { 1 } else { n };
            if min == n {
                level.push_number(Item::Fraction { min, max: n }, Some(n));
            } else {
                level.push(Item::Fraction { min, max: n });
            }
        }
        'V' if n == 2 => level.push(Item::ZoneId),
        'z' | 'v' => match n {
            1..=3 => level.push(Item::ZoneName { full: false }),
            4 => level.push(Item::ZoneName { full: true }),
            _ => return Err(Refused::Other),
        },
        'O' if n == 1 || n == 4 => level.push(Item::LocalizedOffset { full: n == 4 }),
        'Z' => match n {
            1..=3 => level.push(Item::Offset(offset_form(2, "+0000"))),
            4 => level.push(Item::LocalizedOffset { full: true }),
            5 => level.push(Item::Offset(offset_form(5, "Z"))),
            _ => return Err(Refused::Other),
        },
        'X' if n <= 5 => level.push(Item::Offset(offset_form(n, "Z"))),
        'x' if n <= 5 => {
            level.push(Item::Offset(offset_form(n, ["+00", "+0000", "+00:00", "+0000", "+00:00"][n - 1])));
        }
        _ => return Err(Refused::Other),
    }
    Ok(())
}

/// The form that `n` letters `X` stand for.
fn offset_form(n: usize, zero: &'static str) -> OffsetForm {
    OffsetForm { minutes: n > 1, seconds: n > 3, colon: n == 3 || n == 5, zero }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals() {
        let why = |p: &str, reading: bool| compile_condition(p, reading);
        let old = "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION";
        for p in ["YYYY", "u", "w", "aa", "HHH", "MMMMM", "EEEEE", "yyyyyyy", "yyyy{", "yyyy]", "ddd"] {
            assert_eq!(why(p, false), old, "{p}");
        }
        for p in ["EEE d", "F", "YYYY"] {
            assert_eq!(why(p, true), old, "{p}");
        }
        assert_eq!(why("e", false), "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_WEEK_BASED_PATTERN");
        assert_eq!(why("h B", false), "INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER");
        assert_eq!(why("QQ", true), "INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER");
        assert_eq!(why("qqqqq", false), "INVALID_DATETIME_PATTERN.LENGTH");
        for p in ["b", "T", "V", "yyyy'"] {
            assert_eq!(why(p, false), "INVALID_DATETIME_PATTERN.WITH_SUGGESTION", "{p}");
        }
    }

    fn compile_condition(pattern: &str, reading: bool) -> &'static str {
        let compiled = if reading { DatePattern::for_reading(pattern) } else { DatePattern::for_printing(pattern) };
        compiled.expect_err("a pattern that is refused").condition
    }
}

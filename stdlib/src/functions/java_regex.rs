//! Java's regular expressions on top of two engines: a linear-time one, and a backtracking one for look-around,
//! back-references and possessive quantifiers. What both write in the same way but mean differently is translated.

use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::error::EvalError;

/// What Java's `.` does not match.
const LINE_ENDS: &str = r"\n\r\u{85}\u{2028}\u{2029}";

/// A compiled regular expression.
#[derive(Debug)]
pub struct Regex {
    engine: Engine,
    /// For texts that end with a line end, before which Java's `$` matches too: the pattern that says so.
    at_line_end: Option<(String, OnceLock<Option<Engine>>)>,
    groups: usize,
}

#[derive(Debug)]
enum Engine {
    Plain(regex::Regex),
    Fancy(Box<fancy_regex::Regex>),
}

/// Byte ranges of a match: the whole, then the groups.
pub type Groups = Vec<Option<(usize, usize)>>;

impl Engine {
    fn compile(translated: &Translated) -> Result<Engine, String> {
        if !translated.backtracks
            && let Ok(plain) = regex::Regex::new(&translated.pattern)
        {
            return Ok(Engine::Plain(plain));
        }
        fancy_regex::Regex::new(&translated.pattern).map(|r| Engine::Fancy(Box::new(r))).map_err(|e| e.to_string())
    }

    fn find_at(&self, s: &str, from: usize) -> Result<Option<(usize, usize)>, EvalError> {
        match self {
            Engine::Plain(r) => Ok(r.find_at(s, from).map(|m| (m.start(), m.end()))),
            Engine::Fancy(r) => r.find_from_pos(s, from).map(|m| m.map(|m| (m.start(), m.end()))).map_err(gave_up),
        }
    }

    fn groups_at(&self, s: &str, from: usize) -> Result<Option<Groups>, EvalError> {
        match self {
            Engine::Plain(r) => {
                Ok(r.captures_at(s, from).map(|c| c.iter().map(|g| g.map(|m| (m.start(), m.end()))).collect()))
            }
            Engine::Fancy(r) => r
                .captures_from_pos(s, from)
                .map(|c| c.map(|c| c.iter().map(|g| g.map(|m| (m.start(), m.end()))).collect()))
                .map_err(gave_up),
        }
    }
}

fn gave_up(e: fancy_regex::Error) -> EvalError {
    EvalError::new("INVALID_PARAMETER_VALUE.PATTERN", format!("The regular expression gave up: {e}."))
}

impl Regex {
    /// Compiles a pattern; Spark's condition if it is none. `function` is for the message.
    pub fn compile(pattern: &str, function: &str) -> Result<Regex, EvalError> {
        let refused = |why: String| {
            EvalError::new(
                "INVALID_PARAMETER_VALUE.PATTERN",
                format!("The pattern '{pattern}' of `{function}` is no regular expression: {why}."),
            )
        };
        let translated = translate(pattern, false).map_err(refused)?;
        let engine = Engine::compile(&translated).map_err(refused)?;
        let groups = match &engine {
            Engine::Plain(r) => r.captures_len(),
            Engine::Fancy(r) => r.captures_len(),
        };
        let at_line_end = translated.ends_lines.then(|| (pattern.to_owned(), OnceLock::new()));
        Ok(Regex { engine, at_line_end, groups: groups - 1 })
    }

    /// Number of groups, the whole match not counted.
    pub fn group_count(&self) -> usize {
        self.groups
    }

    /// Names of the groups, by number.
    pub fn group_named(&self, name: &str) -> Option<usize> {
        match &self.engine {
            Engine::Plain(r) => r.capture_names().position(|n| n == Some(name)),
            Engine::Fancy(r) => r.capture_names().position(|n| n == Some(name)),
        }
    }

    fn engine(&self, s: &str) -> &Engine {
        let Some((pattern, cell)) = &self.at_line_end else { return &self.engine };
        if !s.ends_with(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            return &self.engine;
        }
        let strict = cell.get_or_init(|| translate(pattern, true).ok().and_then(|t| Engine::compile(&t).ok()));
        strict.as_ref().unwrap_or(&self.engine)
    }

    /// Whether it matches somewhere. Errors only where backtracking gives up.
    pub fn is_match(&self, s: &str) -> Result<bool, EvalError> {
        match self.engine(s) {
            Engine::Plain(r) => Ok(r.is_match(s)),
            Engine::Fancy(r) => r.is_match(s).map_err(gave_up),
        }
    }

    /// The first match at or behind `from`.
    pub fn find_at(&self, s: &str, from: usize) -> Result<Option<(usize, usize)>, EvalError> {
        self.engine(s).find_at(s, from)
    }

    /// The first match at or behind `from`, with its groups.
    pub fn groups_at(&self, s: &str, from: usize) -> Result<Option<Groups>, EvalError> {
        self.engine(s).groups_at(s, from)
    }

    /// Calls `f` for each match as Java's `Matcher.find` finds them: an empty match may stand right behind another match.
    pub fn for_each(
        &self,
        s: &str,
        mut f: impl FnMut(&[Option<(usize, usize)>]) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        let mut from = 0;
        while let Some(groups) = self.groups_at(s, from)? {
            let Some((start, end)) = groups[0] else { break };
            f(&groups)?;
            from = next_start(s, start, end);
            if from > s.len() {
                break;
            }
        }
        Ok(())
    }

    /// As [`Regex::for_each`], without groups.
    pub fn for_each_range(
        &self,
        s: &str,
        mut f: impl FnMut(usize, usize) -> Result<(), EvalError>,
    ) -> Result<(), EvalError> {
        let mut from = 0;
        while let Some((start, end)) = self.find_at(s, from)? {
            f(start, end)?;
            from = next_start(s, start, end);
            if from > s.len() {
                break;
            }
        }
        Ok(())
    }
}

/// Where the search goes on behind a match: one character further if it was empty.
fn next_start(s: &str, start: usize, end: usize) -> usize {
    if end > start { end } else { end + s[end..].chars().next().map_or(1, char::len_utf8) }
}

/// A pattern in the engines' words.
struct Translated {
    pattern: String,
    /// Only the backtracking engine knows what is in it.
    backtracks: bool,
    /// It holds a `$` or `\Z` that matches before a line end at the end of the text.
    ends_lines: bool,
}

/// Flags that change what is translated.
#[derive(Clone, Copy, Default)]
struct Flags {
    dot_all: bool,
    multi_line: bool,
    verbose: bool,
    unicode: bool,
}

struct Translator<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    flags: Flags,
    outer: Vec<Flags>,
    /// Whether `$` is written as what it means before a final line end.
    strict_end: bool,
    backtracks: bool,
    ends_lines: bool,
    /// Whether a quantifier stood right before.
    after_quantifier: bool,
}

fn translate(pattern: &str, strict_end: bool) -> Result<Translated, String> {
    let mut t = Translator {
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() + 8),
        flags: Flags::default(),
        outer: vec![],
        strict_end,
        backtracks: false,
        ends_lines: false,
        after_quantifier: false,
    };
    t.run()?;
    Ok(Translated { pattern: t.out, backtracks: t.backtracks, ends_lines: t.ends_lines })
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.next() {
            let quantified = std::mem::take(&mut self.after_quantifier);
            match c {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '.' if self.flags.dot_all => self.out.push_str("(?s:.)"),
                '.' => {
                    let _ = write!(self.out, "[^{LINE_ENDS}]");
                }
                '$' if self.flags.multi_line => self.out.push('$'),
                '$' => self.end_of_text(),
                '(' => self.group()?,
                ')' => {
                    self.out.push(')');
                    if let Some(flags) = self.outer.pop() {
                        self.flags = flags;
                    }
                }
                '*' if quantified => return Err("a `*` has nothing to repeat".into()),
                '*' | '+' | '?' => {
                    // `+` behind a quantifier makes it possessive, which the linear engine would read as a repetition.
                    self.backtracks |= quantified && c == '+';
                    self.after_quantifier = !quantified;
                    self.out.push(c);
                }
                '{' => {
                    self.out.push('{');
                    for c in self.rest.by_ref() {
                        self.out.push(c);
                        if c == '}' {
                            break;
                        }
                    }
                    self.after_quantifier = true;
                }
                '#' if self.flags.verbose => while self.rest.next_if(|c| *c != '\n').is_some() {},
                c if self.flags.verbose && c.is_ascii_whitespace() => {}
                c => self.out.push(c),
            }
        }
        Ok(())
    }

    fn end_of_text(&mut self) {
        self.ends_lines = true;
        if self.strict_end {
            self.backtracks = true;
            let _ = write!(self.out, r"(?=(?:\r\n|[{LINE_ENDS}])?\z)");
        } else {
            self.out.push_str(r"\z");
        }
    }

    /// Behind `(`: copies the head of the group, reads its flags.
    fn group(&mut self) -> Result<(), String> {
        let before = self.flags;
        self.out.push('(');
        if self.rest.peek() != Some(&'?') {
            self.outer.push(before);
            return Ok(());
        }
        self.rest.next();
        self.out.push('?');
        match self.rest.peek() {
            Some('=' | '!' | '>' | '<' | ':') => {
                let c = self.rest.next().expect("peeked");
                let after = self.rest.peek().copied();
                self.backtracks |= matches!(c, '=' | '!' | '>') || c == '<' && matches!(after, Some('=' | '!'));
                self.out.push(c);
                if c == '<' && matches!(after, Some('=' | '!')) {
                    self.out.extend(self.rest.next());
                } else if c == '<' {
                    for c in self.rest.by_ref() {
                        self.out.push(c);
                        if c == '>' {
                            break;
                        }
                    }
                }
                self.outer.push(before);
                Ok(())
            }
            _ => self.inline_flags(before),
        }
    }

    /// Behind `(?`: `flags-flags)` or `flags-flags:`. Java's `d` and `u` have no counterpart and change little;
    /// blanks are dropped here, so `x` is not passed on.
    fn inline_flags(&mut self, before: Flags) -> Result<(), String> {
        let (mut on, mut off) = (String::new(), String::new());
        let mut negative = false;
        loop {
            let Some(c) = self.rest.next() else { return Err("a group is not closed".into()) };
            match c {
                '-' => negative = true,
                'i' if negative => off.push(c),
                'i' => on.push(c),
                'm' => {
                    self.flags.multi_line = !negative;
                    if negative { off.push(c) } else { on.push(c) }
                }
                's' => self.flags.dot_all = !negative,
                'x' => self.flags.verbose = !negative,
                'U' => self.flags.unicode = !negative,
                'd' | 'u' => {}
                ')' | ':' => {
                    self.out.push_str(&on);
                    if !off.is_empty() {
                        self.out.push('-');
                        self.out.push_str(&off);
                    }
                    let empty = on.is_empty() && off.is_empty();
                    if c == ':' {
                        self.out.push(':');
                        self.outer.push(before);
                    } else if empty {
                        // A group of no flags is nothing.
                        self.out.truncate(self.out.len() - 2);
                    } else {
                        self.out.push(')');
                    }
                    return Ok(());
                }
                c => return Err(format!("unknown flag `{c}`")),
            }
        }
    }

    fn class_name(&mut self) -> Result<String, String> {
        match self.rest.next() {
            Some('{') => {
                let name: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                Ok(name)
            }
            Some(c) => Ok(c.to_string()),
            None => Err("a property has no name".into()),
        }
    }

    /// A property class, `\p{..}` or `\P{..}`.
    fn property(&mut self, negated: bool) -> Result<(), String> {
        let name = self.class_name()?;
        let posix = match name.as_str() {
            "Lower" => "a-z",
            "Upper" => "A-Z",
            "ASCII" => r"\x00-\x7F",
            "Alpha" => "a-zA-Z",
            "Digit" => "0-9",
            "Alnum" => "a-zA-Z0-9",
            "Punct" => r"!-/:-@\[-`\{-~",
            "Graph" => "!-~",
            "Print" => r"\x20-\x7E",
            "Blank" => r"\x20\t",
            "Cntrl" => r"\x00-\x1F\x7F",
            "XDigit" => "0-9a-fA-F",
            "Space" => r"\x20\t\n\x0B\f\r",
            "javaLowerCase" => r"\p{Lowercase}",
            "javaUpperCase" => r"\p{Uppercase}",
            "javaWhitespace" => r"\s",
            _ => {
                let name = name.strip_prefix("Is").unwrap_or(&name);
                let name = name.strip_prefix("script=").or(name.strip_prefix("sc=")).unwrap_or(name);
                let name = name.strip_prefix("general_category=").or(name.strip_prefix("gc=")).unwrap_or(name);
                let _ = write!(self.out, r"\{}{{{name}}}", if negated { 'P' } else { 'p' });
                return Ok(());
            }
        };
        let _ = write!(self.out, "[{}{posix}]", if negated { "^" } else { "" });
        Ok(())
    }

    /// A predefined class, which in Java is of ASCII unless the flag U is set.
    fn ascii_class(&mut self, c: char, members: &str, in_class: bool) {
        if self.flags.unicode {
            let _ = write!(self.out, r"\{c}");
        } else if c.is_ascii_uppercase() {
            let _ = write!(self.out, "[^{members}]");
        } else if in_class {
            self.out.push_str(members);
        } else {
            let _ = write!(self.out, "[{members}]");
        }
    }

    /// Behind a backslash.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let Some(c) = self.rest.next() else { return Err("it ends with a backslash".into()) };
        match c {
            'd' | 'D' => self.ascii_class(c, "0-9", in_class),
            'w' | 'W' => self.ascii_class(c, "a-zA-Z0-9_", in_class),
            's' | 'S' => self.ascii_class(c, r"\x20\t\n\x0B\f\r", in_class),
            'h' | 'H' => {
                self.ascii_class(c, r"\x20\t\u{A0}\u{1680}\u{180E}\u{2000}-\u{200A}\u{202F}\u{205F}\u{3000}", in_class);
            }
            'v' | 'V' => self.ascii_class(c, r"\n\x0B\f\r\u{85}\u{2028}\u{2029}", in_class),
            'R' => self.out.push_str(r"(?:\r\n|[\n\x0B\f\r\u{85}\u{2028}\u{2029}])"),
            'p' => self.property(false)?,
            'P' => self.property(true)?,
            'e' => self.out.push_str(r"\x1B"),
            'a' | 'f' | 'n' | 'r' | 't' => {
                let _ = write!(self.out, r"\{c}");
            }
            '0' => {
                let mut code = 0;
                while code < 32
                    && let Some(d) = self.rest.peek().and_then(|c| c.to_digit(8))
                {
                    self.rest.next();
                    code = code * 8 + d;
                }
                self.code_point(code);
            }
            'x' if self.rest.peek() == Some(&'{') => {
                self.rest.next();
                let digits: String = self.rest.by_ref().take_while(|c| *c != '}').collect();
                self.code_point(u32::from_str_radix(&digits, 16).map_err(|e| e.to_string())?);
            }
            'x' => {
                let code = self.hex(2)?;
                self.code_point(code);
            }
            'u' => {
                let mut code = self.hex(4)?;
                // Two halves of a surrogate pair are one character.
                if (0xd800..0xdc00).contains(&code) && self.rest.next_if_eq(&'\\').is_some() {
                    if self.rest.next() != Some('u') {
                        return Err("half of a surrogate pair".into());
                    }
                    let low = self.hex(4)?;
                    code = 0x10000 + ((code - 0xd800) << 10) + (low & 0x3ff);
                }
                self.code_point(code);
            }
            'c' => {
                let Some(control) = self.rest.next() else { return Err("`\\c` has no character".into()) };
                self.code_point(control as u32 ^ 64);
            }
            'Q' => {
                let mut text = String::new();
                for c in self.rest.by_ref() {
                    text.push(c);
                    if text.ends_with("\\E") {
                        text.truncate(text.len() - 2);
                        break;
                    }
                }
                self.out.push_str(&regex::escape(&text));
            }
            'E' => {}
            'b' | 'B' | 'A' | 'z' if !in_class => {
                let _ = write!(self.out, r"\{c}");
            }
            'Z' if !in_class => self.end_of_text(),
            'G' if !in_class => {
                self.backtracks = true;
                self.out.push_str(r"\G");
            }
            'k' | '1'..='9' if !in_class => {
                self.backtracks = true;
                let _ = write!(self.out, r"\{c}");
                if c == 'k' {
                    for c in self.rest.by_ref() {
                        self.out.push(c);
                        if c == '>' {
                            break;
                        }
                    }
                }
            }
            c if c.is_ascii_alphanumeric() => return Err(format!("unknown escape `\\{c}`")),
            c => self.literal(c),
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        if c == ' ' || !c.is_ascii() || c.is_ascii_control() || matches!(c, '<' | '>') {
            self.out.push(c);
        } else {
            self.out.push('\\');
            self.out.push(c);
        }
    }

    fn hex(&mut self, digits: usize) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..digits {
            let digit = self.rest.next().and_then(|c| c.to_digit(16));
            code = code * 16 + digit.ok_or("a hexadecimal escape is too short")?;
        }
        Ok(code)
    }

    fn code_point(&mut self, code: u32) {
        let _ = write!(self.out, r"\x{{{code:X}}}");
    }

    /// Behind `[`: a class up to its `]`, with classes inside.
    fn class(&mut self) -> Result<(), String> {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        if self.rest.next_if_eq(&']').is_some() {
            self.out.push_str(r"\]");
        }
        // `[:` opens no class by name in Java.
        if self.rest.next_if_eq(&':').is_some() {
            self.out.push_str(r"\:");
        }
        while let Some(c) = self.rest.next() {
            match c {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' => self.class()?,
                '\\' => self.escape(true)?,
                '&' if self.rest.next_if_eq(&'&').is_some() => self.out.push_str("&&"),
                // These are set operations in the engines, when doubled.
                '~' | '&' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                '-' if self.rest.peek() == Some(&'-') => self.out.push_str(r"\-"),
                c if self.flags.verbose && (c.is_ascii_whitespace() || c == '#') => {}
                c => self.out.push(c),
            }
        }
        Err("a character class is not closed".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, s: &str) -> Option<String> {
        let r = Regex::compile(pattern, "rlike").expect("a pattern");
        r.find_at(s, 0).expect("found").map(|(a, b)| s[a..b].to_owned())
    }

    #[test]
    fn classes_are_of_ascii() {
        assert_eq!(found(r"\d+", "٣4"), Some("4".into()));
        assert_eq!(found(r"\w+", "éa_1"), Some("a_1".into()));
        assert_eq!(found(r"[\w-]+", "é a-b"), Some("a-b".into()));
        assert_eq!(found(r"[^\W\d]+", "12ab"), Some("ab".into()));
        assert_eq!(found(r"(?U)\w+", "éa"), Some("éa".into()));
        assert_eq!(found(r"\p{Punct}+", "ab,;c"), Some(",;".into()));
        assert_eq!(found(r"\p{IsAlphabetic}+", "1é"), Some("é".into()));
        assert_eq!(found(r"[a-z&&[^b]]+", "bac"), Some("ac".into()));
    }

    #[test]
    fn ends_of_lines() {
        assert_eq!(found("b$", "ab\n"), Some("b".into()));
        assert_eq!(found("b$", "ab\nc"), None);
        assert_eq!(found(r"b\z", "ab\n"), None);
        assert_eq!(found("a.b", "a\nb"), None);
        assert_eq!(found("a.b", "a\rb"), None);
        assert_eq!(found("(?s)a.b", "a\nb"), Some("a\nb".into()));
        assert_eq!(found("(?m)^b$", "a\nb\nc"), Some("b".into()));
    }

    #[test]
    fn what_needs_backtracking() {
        assert_eq!(found(r"(\w)\1", "abccd"), Some("cc".into()));
        assert_eq!(found(r"a(?=b)", "acab"), Some("a".into()));
        assert_eq!(found(r"(?<!x)b", "xbb"), Some("b".into()));
        assert_eq!(found(r"a*+a", "aaa"), None);
        assert_eq!(found(r"(?>a*)b", "aab"), Some("aab".into()));
    }

    #[test]
    fn escapes() {
        assert_eq!(found(r"\Qa.b\E+", "a.bb"), Some("a.bb".into()));
        assert_eq!(found(r"\u00e9\x41\0101", "éAA"), Some("éAA".into()));
        assert_eq!(found(r"\<\-\/\ ", "<-/ "), Some("<-/ ".into()));
        assert_eq!(found("(?x) l i # a comment", "li"), Some("li".into()));
        assert!(Regex::compile("(b", "rlike").is_err());
        assert!(Regex::compile(r"\j", "rlike").is_err());
        assert!(Regex::compile("[a", "rlike").is_err());
        assert!(Regex::compile("a**", "rlike").is_err());
        assert_eq!(found("[[:alpha:]]", "x"), None);
        assert!(Regex::compile("a\\", "rlike").is_err());
    }

    #[test]
    fn empty_matches_stand_behind_others() {
        let r = Regex::compile("a*", "x").expect("a pattern");
        let mut ranges = vec![];
        r.for_each_range("aab", |a, b| {
            ranges.push((a, b));
            Ok(())
        })
        .expect("no error");
        assert_eq!(ranges, [(0, 2), (2, 2), (3, 3)]);
    }
}

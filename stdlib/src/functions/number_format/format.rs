//! The formats of `to_number` and `to_char`: read once, then followed in either direction, as Spark does.

use ssql_ir::DataType as T;

/// A part of a format between others.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// Digits and the commas between them, from left to right.
    Digits(Vec<Piece>),
    Point,
    Dollar,
    /// `S`: plus or minus.
    Sign,
    /// `MI`: minus, or nothing.
    Minus,
    /// `PR`: negative numbers stand in angle brackets. The opening one is the first token.
    Open,
    Close,
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// So many digits; `exact`: it starts with `0`, and all of them have to be there.
    Digits {
        n: usize,
        exact: bool,
    },
    Comma,
}

/// A format.
#[derive(Debug, Clone)]
pub(super) struct Format {
    tokens: Vec<Token>,
    whole: usize,
    fraction: usize,
}

fn digits(pieces: &[Piece]) -> usize {
    pieces.iter().map(|p| if let Piece::Digits { n, .. } = p { *n } else { 0 }).sum()
}

impl Format {
    /// Reads a format; Spark's condition if it is none.
    pub(super) fn parse(text: &str) -> Result<Format, &'static str> {
        let tokens = tokenize(&text.to_uppercase());
        check(&tokens)?;
        let point = tokens.iter().position(|t| *t == Token::Point).unwrap_or(tokens.len());
        let count =
            |tokens: &[Token]| tokens.iter().map(|t| if let Token::Digits(p) = t { digits(p) } else { 0 }).sum();
        let (whole, fraction) = (count(&tokens[..point]), count(&tokens[point..]));
        Ok(Format { tokens, whole, fraction })
    }

    /// The DECIMAL that holds all numbers of the format, if there is one.
    pub(super) fn data_type(&self) -> Option<T> {
        let precision = self.whole + self.fraction;
        (precision <= 38).then_some(T::Decimal(precision as u8, self.fraction as u8))
    }

    /// The plain number (`-1234.5`) that a text stands for; `None` if it does not follow the format.
    pub(super) fn read(&self, text: &str) -> Option<String> {
        let (mut whole, mut fraction) = (String::new(), String::new());
        let (mut after_point, mut negative, mut opened, mut closed) = (false, false, false, false);
        let mut rest = text;
        for token in &self.tokens {
            let next = rest.chars().next();
            let is_next = |c: char| next == Some(c);
            match token {
                Token::Digits(pieces) => {
                    rest = read_digits(pieces, rest, if after_point { &mut fraction } else { &mut whole })?;
                    continue;
                }
                Token::Point if is_next('.') => after_point = true,
                Token::Dollar if is_next('$') => {}
                Token::Dollar if next.is_some() => return None,
                Token::Sign if is_next('+') => {}
                Token::Sign | Token::Minus if is_next('-') => negative = !negative,
                Token::Open if is_next('<') => opened = true,
                Token::Close if is_next('>') => {
                    if !opened {
                        return None;
                    }
                    closed = true;
                    negative = !negative;
                }
                // What is not there is taken as left out.
                _ => continue,
            }
            rest = &rest[1..];
        }
        if !rest.is_empty() || opened != closed || whole.len() + fraction.len() == 0 {
            return None;
        }
        Some(format!("{}{whole}.{fraction}", if negative { "-" } else { "" }))
    }

    /// A number of `scale` digits after the point as text; `#` for every digit if it has more than the format.
    pub(super) fn write(&self, value: i128, scale: usize) -> String {
        let plain = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = plain.split_at(plain.len() - scale);
        let mut whole = whole.trim_start_matches('0').to_owned();
        let mut fraction = fraction.trim_end_matches('0').to_owned();
        if whole.len() > self.whole || fraction.len() > self.fraction {
            (whole, fraction) = ("#".repeat(self.whole), "#".repeat(self.fraction));
        }
        let mut writer = Writer {
            whole: format!("{whole:>width$}", width = self.whole).chars().collect::<Vec<_>>().into_iter(),
            fraction: format!("{fraction:0<width$}", width = self.fraction).chars().collect::<Vec<_>>().into_iter(),
            after_point: false,
            out: vec![],
        };
        self.tokens.iter().for_each(|t| writer.token(t, value < 0));
        writer.strip_lone_point();
        match writer.out.as_slice() {
            [] | ['+'] | ['-'] => "0".into(),
            out => out.iter().collect(),
        }
    }
}

fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = vec![];
    let mut after_point = false;
    let mut rest = text;
    let piece = |tokens: &mut Vec<Token>, piece: Piece| match tokens.last_mut() {
        Some(Token::Digits(pieces)) => pieces.push(piece),
        _ => tokens.push(Token::Digits(vec![piece])),
    };
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        match c {
            '0' | '9' => {
                used = rest.find(|c| !matches!(c, '0' | '9')).unwrap_or(rest.len());
                piece(&mut tokens, Piece::Digits { n: used, exact: c == '0' && !after_point });
            }
            ',' | 'G' => piece(&mut tokens, Piece::Comma),
            '.' | 'D' => {
                after_point = true;
                tokens.push(Token::Point);
            }
            '$' => tokens.push(Token::Dollar),
            'S' => tokens.push(Token::Sign),
            'M' if rest.starts_with("MI") => {
                used = 2;
                tokens.push(Token::Minus);
            }
            'P' if rest.starts_with("PR") => {
                used = 2;
                tokens.insert(0, Token::Open);
                tokens.push(Token::Close);
            }
            _ => tokens.push(Token::Unknown),
        }
        rest = &rest[used..];
    }
    tokens
}

/// Spark's rules for formats, in its order.
fn check(tokens: &[Token]) -> Result<(), &'static str> {
    let is_digits = |t: &Token| matches!(t, Token::Digits(_));
    let first = |wanted: &dyn Fn(&Token) -> bool| tokens.iter().position(wanted);
    let (dollar, point) = (first(&|t| *t == Token::Dollar), first(&|t| *t == Token::Point));
    if tokens.is_empty() {
        return Err("INVALID_FORMAT.EMPTY");
    }
    let Some(first_digits) = first(&is_digits) else { return Err("INVALID_FORMAT.WRONG_NUM_DIGIT") };
    if dollar.is_some_and(|d| first_digits < d) {
        return Err("INVALID_FORMAT.CUR_MUST_BEFORE_DIGIT");
    }
    if let (Some(d), Some(p)) = (dollar, point)
        && p < d
    {
        return Err("INVALID_FORMAT.CUR_MUST_BEFORE_DEC");
    }
    for (i, token) in tokens.iter().enumerate() {
        let Token::Digits(pieces) = token else { continue };
        let commas = pieces.contains(&Piece::Comma);
        if point.is_none_or(|p| i < p) {
            let at_an_end = pieces.first() == Some(&Piece::Comma) || pieces.last() == Some(&Piece::Comma);
            if at_an_end || pieces.windows(2).any(|w| w == [Piece::Comma, Piece::Comma]) {
                return Err("INVALID_FORMAT.CONT_THOUSANDS_SEPS");
            }
        } else if commas {
            return Err("INVALID_FORMAT.THOUSANDS_SEPS_MUST_BEFORE_DEC");
        }
    }
    for once in [Token::Point, Token::Sign, Token::Minus, Token::Dollar, Token::Close] {
        if tokens.iter().filter(|t| **t == once).count() > 1 {
            return Err("INVALID_FORMAT.WRONG_NUM_TOKEN");
        }
    }
    // The places that tokens may stand at, each of them at most once.
    let places: [&dyn Fn(&Token) -> bool; 8] = [
        &|t| *t == Token::Open,
        &|t| matches!(t, Token::Minus | Token::Sign),
        &|t| *t == Token::Dollar,
        &is_digits,
        &|t| *t == Token::Point,
        &is_digits,
        &|t| *t == Token::Dollar,
        &|t| matches!(t, Token::Minus | Token::Sign | Token::Close),
    ];
    let mut rest = tokens;
    for fits in places {
        if rest.first().is_some_and(fits) {
            rest = &rest[1..];
        }
    }
    if rest.is_empty() { Ok(()) } else { Err("INVALID_FORMAT.UNEXPECTED_TOKEN") }
}

/// Takes the digits, commas and white space at the start of a text; `None` if they are not those of the pieces, counted
/// from the right: groups at the left may be missing where they need not be complete.
fn read_digits<'a>(pieces: &[Piece], text: &'a str, out: &mut String) -> Option<&'a str> {
    let end = text.find(|c: char| !(c.is_whitespace() || c.is_ascii_digit() || c == ',')).unwrap_or(text.len());
    let (taken, rest) = text.split_at(end);
    let given: Vec<usize> = taken.rsplit(',').map(|group| group.bytes().filter(u8::is_ascii_digit).count()).collect();
    let wanted = pieces.iter().rev().filter_map(|p| match p {
        Piece::Digits { n, exact } => Some((*n, *exact)),
        Piece::Comma => None,
    });
    if given.len() > wanted.clone().count() {
        return None;
    }
    for (i, (n, exact)) in wanted.enumerate() {
        let given = given.get(i).copied().unwrap_or(0);
        if given > n || (exact && given != n) {
            return None;
        }
    }
    out.extend(taken.chars().filter(char::is_ascii_digit));
    Some(rest)
}

/// A text in the making.
struct Writer {
    whole: std::vec::IntoIter<char>,
    fraction: std::vec::IntoIter<char>,
    after_point: bool,
    out: Vec<char>,
}

impl Writer {
    fn token(&mut self, token: &Token, negative: bool) {
        match token {
            Token::Digits(pieces) => pieces.iter().for_each(|p| self.piece(p)),
            Token::Point => {
                // A number below one has a zero before its point if the format leaves place for it.
                if let Some(last @ ' ') = self.out.last_mut() {
                    *last = '0';
                }
                self.out.push('.');
                self.after_point = true;
            }
            Token::Dollar => self.out.push('$'),
            Token::Sign => {
                self.strip_lone_point();
                self.before_blanks(if negative { '-' } else { '+' });
            }
            Token::Minus if negative => {
                self.strip_lone_point();
                self.before_blanks('-');
            }
            Token::Minus => self.out.push(' '),
            Token::Open if negative => self.out.push('<'),
            Token::Close => {
                self.strip_lone_point();
                if negative {
                    self.before_blanks('>');
                } else {
                    self.out.extend([' ', ' ']);
                }
            }
            Token::Open | Token::Unknown => {}
        }
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Digits { n, .. } if self.after_point => self.out.extend(self.fraction.by_ref().take(*n)),
            Piece::Digits { n, exact } => {
                for _ in 0..*n {
                    match self.whole.next() {
                        Some(' ') if *exact => self.out.push('0'),
                        Some(' ') | None => self.blank(),
                        Some(c) => self.out.push(c),
                    }
                }
            }
            Piece::Comma if self.out.last().is_some_and(char::is_ascii_digit) => self.out.push(','),
            Piece::Comma => self.blank(),
        }
    }

    /// A blank goes before the sign that stands at the end.
    fn blank(&mut self) {
        let signs = self.out.iter().rev().take_while(|c| matches!(c, '+' | '-' | '<')).count();
        self.out.insert(self.out.len() - signs, ' ');
    }

    /// A sign goes before the blanks at the end.
    fn before_blanks(&mut self, sign: char) {
        let blanks = self.out.iter().rev().take_while(|c| **c == ' ').count();
        self.out.insert(self.out.len() - blanks, sign);
    }

    /// A point that no digit follows becomes a blank.
    fn strip_lone_point(&mut self) {
        if let Some(i) = self.out.iter().position(|c| *c == '.')
            && self.out.get(i + 1).is_none_or(|c| *c == ' ')
        {
            self.out[i] = ' ';
        }
    }
}

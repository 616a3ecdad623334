//! Where SQL text really begins and ends: sqlparser's spans leave out a call's closing bracket, INTERVAL and its unit.
//!
//! [`Extents`] remembers the brackets and intervals of one fragment and completes a node's span by them, so that an
//! underline covers `count(*)` and `INTERVAL 5 MINUTES`, not `count` and `5`.

use crate::lift::{interval_end, is_call_name};
use crate::source::Span;
use crate::token::{Token, TokenKind};

/// The brackets and intervals of one fragment, in script positions.
#[derive(Debug, Clone, Default)]
pub struct Extents {
    /// In the order in which they open.
    brackets: Vec<Bracket>,
    /// In script order.
    intervals: Vec<Interval>,
}

#[derive(Debug, Clone, Copy)]
struct Bracket {
    open: u32,
    /// Behind the closing bracket; not behind `open` where none closes it.
    end: u32,
    /// The bracket around it.
    parent: Option<u32>,
    /// Where the name of the call ends whose arguments these are.
    call: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    whole: Span,
    /// The first number or string.
    first: Span,
    /// Where the last number or string ends.
    last: u32,
}

impl Extents {
    /// Those of a fragment's tokens.
    pub(crate) fn of(text: &str, tokens: &[Token]) -> Extents {
        let mut extents = Extents::default();
        let mut around = Vec::new();
        for (i, token) in tokens.iter().enumerate() {
            match token.kind {
                TokenKind::LParen => {
                    let call = i.checked_sub(1).filter(|n| is_call_name(text, tokens, *n));
                    let (open, call) = (token.span.start, call.map(|n| tokens[n].span.end));
                    let parent = around.last().copied();
                    around.push(extents.brackets.len() as u32);
                    extents.brackets.push(Bracket { open, end: open, parent, call });
                }
                TokenKind::RParen => {
                    if let Some(bracket) = around.pop().and_then(|b| extents.brackets.get_mut(b as usize)) {
                        bracket.end = token.span.end;
                    }
                }
                TokenKind::Word if text[token.span.range()].eq_ignore_ascii_case("INTERVAL") => {
                    let end = interval_end(text, tokens, i);
                    let is_amount =
                        |t: &&Token| matches!(t.kind, TokenKind::Number | TokenKind::String | TokenKind::RawString);
                    let terms = &tokens[(i + 1).min(end)..end.min(tokens.len())];
                    let (first, last) = (terms.iter().find(is_amount), terms.iter().rev().find(is_amount));
                    if let (Some(first), Some(last), Some(unit)) = (first, last, terms.last()) {
                        let whole = token.span.to(unit.span);
                        extents.intervals.push(Interval { whole, first: first.span, last: last.span.end });
                    }
                }
                _ => {}
            }
        }
        extents
    }

    /// The span with what belongs to it: brackets that it opens or closes, a call's arguments, an interval's words.
    pub fn complete(&self, span: Span) -> Span {
        if span.is_empty() {
            return span;
        }
        let mut span = span;
        loop {
            let before = span;
            if let Some(i) = self.interval_at(span.start)
                && span.start <= i.first.start
            {
                span.start = i.whole.start;
            }
            if let Some(i) = self.interval_at(span.end - 1)
                && span.end == i.last
                && span.start <= i.first.start
            {
                span.end = i.whole.end;
            }
            let opened = self.around(span.end).filter(|b| b.open >= span.start).map(|b| b.end).max();
            let closed = self.around(span.start).filter(|b| b.end <= span.end).map(|b| b.open).min();
            span.end = opened.unwrap_or(span.end);
            span.start = closed.unwrap_or(span.start);
            let next = self.brackets.partition_point(|b| b.open < span.end);
            if let Some(arguments) = self.brackets.get(next).filter(|b| b.call == Some(span.end) && b.end > b.open) {
                span.end = arguments.end;
            }
            if span == before {
                return span;
            }
        }
    }

    /// The brackets that the position stands inside, innermost first. There are few: text that nests deep is refused.
    fn around(&self, at: u32) -> impl Iterator<Item = &Bracket> {
        let mut next = self.brackets.partition_point(|b| b.open < at).checked_sub(1);
        std::iter::from_fn(move || {
            let bracket = self.brackets.get(next?)?;
            next = bracket.parent.map(|p| p as usize);
            Some(bracket)
        })
        .filter(move |b| at < b.end)
    }

    /// The interval that holds the position.
    fn interval_at(&self, at: u32) -> Option<&Interval> {
        let i = self.intervals.partition_point(|i| i.whole.start <= at).checked_sub(1)?;
        self.intervals.get(i).filter(|i| at < i.whole.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::lex;

    fn completed(text: &str, part: &str) -> String {
        let extents = Extents::of(text, &lex(text, &mut Vec::new()).tokens);
        let start = text.find(part).expect("the part stands in the text") as u32;
        let span = extents.complete(Span::new(start, start + part.len() as u32));
        text[span.range()].to_string()
    }

    #[test]
    fn an_interval_is_underlined_with_its_words() {
        assert_eq!(completed("HOP(ts, INTERVAL 15 MINUTES, '1')", "15"), "INTERVAL 15 MINUTES");
        assert_eq!(completed("a + INTERVAL '1' DAY > b", "a + INTERVAL '1'"), "a + INTERVAL '1' DAY");
        assert_eq!(completed("INTERVAL '1 hour' = x", "'1 hour'"), "INTERVAL '1 hour'");
    }

    #[test]
    fn a_call_is_underlined_with_its_brackets() {
        assert_eq!(completed("SELECT count(*) FROM s", "count"), "count(*)");
        assert_eq!(completed("SELECT f(a, g(b)) FROM s", "f(a, g(b"), "f(a, g(b))");
        assert_eq!(completed("a IN (1, 2)", "a"), "a");
        assert_eq!(completed("((a + b) * c) - d", "b) * c) - d"), "((a + b) * c) - d");
        assert_eq!(completed("f(x", "f"), "f");
    }
}

//! Rewrites the forms of other dialects inside SQL text into ours, for `ssql fmt`:
//!
//! | taken | becomes |
//! |---|---|
//! | `FROM TABLE(TUMBLE(...))` | `FROM TUMBLE(...)` |
//! | `TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => i)` | `TUMBLE(TABLE s, DESCRIPTOR(ts), i)` |
//! | `TUMBLE_START(ts, i)` in a query that groups by `TUMBLE(ts, i)` | `window_start` |
//!
//! HOP and SESSION likewise, `_END` as `window_end`, `_ROWTIME` as `window_time`. All else stays as it was written. A form
//! that holds a comment which the rewriting would lose is left alone.

use crate::lift::is_word;
use crate::source::Span;
use crate::token::{Token, TokenKind, Tokens, lex};

/// The text with the forms of other dialects rewritten.
pub(crate) fn rewrite(text: &str) -> String {
    let mut text = text.to_string();
    // One form at a time: a rewriting may uncover the next.
    while let Some((span, replacement)) = next(&text) {
        text.replace_range(span.range(), &replacement);
    }
    text
}

/// The windows with the names of their arguments, in our order.
const WINDOWS: &[(&str, &[&str])] = &[
    ("TUMBLE", &["DATA", "TIMECOL", "SIZE", "OFFSET"]),
    ("HOP", &["DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"]),
    ("SESSION", &["DATA", "TIMECOL", "GAP"]),
];

fn next(text: &str) -> Option<(Span, String)> {
    let lexed = lex(text, &mut Vec::new());
    let run = Run { text, lexed: &lexed };
    (0..lexed.tokens.len()).find_map(|i| {
        let edit = run.table_function(i).or_else(|| run.named_arguments(i)).or_else(|| run.window_column(i))?;
        let lost = lexed.comments.iter().any(|c| edit.0.contains(c.span));
        (!lost).then_some(edit)
    })
}

struct Run<'t> {
    text: &'t str,
    lexed: &'t Tokens,
}

impl Run<'_> {
    fn tokens(&self) -> &[Token] {
        &self.lexed.tokens
    }

    fn is(&self, i: usize, word: &str) -> bool {
        is_word(self.text, self.tokens(), i, word)
    }

    fn kind(&self, i: usize) -> Option<TokenKind> {
        self.tokens().get(i).map(|t| t.kind)
    }

    fn text(&self, first: usize, end: usize) -> &str {
        match (self.tokens().get(first), end.checked_sub(1).and_then(|last| self.tokens().get(last))) {
            (Some(a), Some(b)) if first < end => &self.text[a.span.to(b.span).range()],
            _ => "",
        }
    }

    /// The bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0u32;
        for i in open..self.tokens().len() {
            match self.kind(i)? {
                TokenKind::LParen => depth += 1,
                TokenKind::RParen => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(i);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The arguments of the call whose bracket opens at `open`: first token and the one behind the last.
    fn arguments(&self, open: usize) -> Option<Vec<(usize, usize)>> {
        let close = self.closing(open)?;
        let mut arguments = Vec::new();
        let (mut start, mut depth) = (open + 1, 0u32);
        for i in open + 1..=close {
            match self.kind(i)? {
                TokenKind::LParen | TokenKind::LBracket => depth += 1,
                TokenKind::Comma | TokenKind::RParen if depth == 0 => {
                    arguments.push((start, i));
                    start = i + 1;
                }
                TokenKind::RParen | TokenKind::RBracket => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        arguments.iter().all(|(a, b)| a < b).then_some(arguments)
    }

    fn window(&self, i: usize) -> Option<&'static (&'static str, &'static [&'static str])> {
        let window = WINDOWS.iter().find(|(name, _)| self.is(i, name))?;
        (self.kind(i + 1) == Some(TokenKind::LParen)).then_some(window)
    }

    /// `TABLE(TUMBLE(...))` as a relation.
    fn table_function(&self, i: usize) -> Option<(Span, String)> {
        let before = i.checked_sub(1)?;
        let relation =
            self.is(before, "FROM") || self.is(before, "JOIN") || self.kind(before) == Some(TokenKind::Comma);
        if !relation || !self.is(i, "TABLE") || self.kind(i + 1) != Some(TokenKind::LParen) {
            return None;
        }
        self.window(i + 2)?;
        let close = self.closing(i + 1)?;
        (self.closing(i + 3)? + 1 == close)
            .then(|| (self.tokens()[i].span.to(self.tokens()[close].span), self.text(i + 2, close).to_string()))
    }

    /// `TUMBLE(DATA => ..., ...)`: all arguments by name.
    fn named_arguments(&self, i: usize) -> Option<(Span, String)> {
        let (_, names) = self.window(i)?;
        let arguments = self.arguments(i + 1)?;
        let mut ordered = vec![None; names.len()];
        for (first, end) in arguments {
            if self.kind(first + 1) != Some(TokenKind::FatArrow) {
                return None;
            }
            let place = names.iter().position(|n| self.is(first, n))?;
            ordered[place] = Some(self.text(first + 2, end));
        }
        // What is left out stands at the end.
        let given: Vec<&str> = ordered.iter().map_while(|a| *a).collect();
        if given.len() != ordered.iter().flatten().count() {
            return None;
        }
        let close = self.closing(i + 1)?;
        let inside = self.tokens()[i + 2].span.to(self.tokens()[close - 1].span);
        Some((inside, given.join(", ")))
    }

    /// `TUMBLE_START(ts, i)` where the query groups by `TUMBLE(ts, i)`.
    fn window_column(&self, i: usize) -> Option<(Span, String)> {
        let word = self.tokens().get(i).filter(|t| t.kind == TokenKind::Word)?;
        let upper = self.text[word.span.range()].to_ascii_uppercase();
        let (base, part) = upper.rsplit_once('_')?;
        let column = match part {
            "START" => "window_start",
            "END" => "window_end",
            "ROWTIME" | "TIME" => "window_time",
            _ => return None,
        };
        if !WINDOWS.iter().any(|(name, _)| *name == base) || self.kind(i + 1) != Some(TokenKind::LParen) {
            return None;
        }
        let close = self.closing(i + 1)?;
        (self.grouped_by(i, base, &self.words(i + 2, close)) && self.keeps_its_name(i, close + 1))
            .then(|| (word.span.to(self.tokens()[close].span), column.to_string()))
    }

    /// Whether a column of the result keeps its name: the call is a whole item of SELECT (which is named for the column),
    /// stands in an item with a name of its own, or in another clause.
    fn keeps_its_name(&self, call: usize, end: usize) -> bool {
        let (from, to) = self.select_around(call);
        let first = from + 1 + usize::from(self.is(from + 1, "DISTINCT") || self.is(from + 1, "ALL"));
        let (mut start, mut depth) = (first, 0u32);
        for k in first..=to {
            let ends = k == to || (depth == 0 && (self.kind(k) == Some(TokenKind::Comma) || self.is(k, "FROM")));
            if ends && (start..k).contains(&call) {
                return (start == call && k == end) || self.is(k.saturating_sub(2), "AS");
            }
            if k == to || (depth == 0 && self.is(k, "FROM")) {
                return true;
            }
            match self.kind(k) {
                Some(TokenKind::LParen) => depth += 1,
                Some(TokenKind::RParen) => depth = depth.saturating_sub(1),
                Some(TokenKind::Comma) if depth == 0 => start = k + 1,
                _ => {}
            }
        }
        true
    }

    /// Tokens as upper-case texts, to compare.
    fn words(&self, first: usize, end: usize) -> Vec<String> {
        (first..end).map(|i| self.text(i, i + 1).to_ascii_uppercase()).collect()
    }

    /// Whether the SELECT around token `i` groups by the window with these arguments.
    fn grouped_by(&self, i: usize, window: &str, arguments: &[String]) -> bool {
        let (from, to) = self.select_around(i);
        let mut depth = 0u32;
        let mut grouping = false;
        for k in from..to {
            match self.kind(k) {
                Some(TokenKind::LParen) => depth += 1,
                Some(TokenKind::RParen) => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                _ if self.is(k, "GROUP") && self.is(k + 1, "BY") => grouping = true,
                _ if ["HAVING", "ORDER", "LIMIT", "QUALIFY", "WINDOW"].iter().any(|w| self.is(k, w)) => {
                    grouping = false
                }
                _ if grouping
                    && self.is(k, window)
                    && self.kind(k + 1) == Some(TokenKind::LParen)
                    && self.closing(k + 1).is_some_and(|close| self.words(k + 2, close) == arguments) =>
                {
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// The tokens of the SELECT that token `i` belongs to: from its first to behind its last.
    fn select_around(&self, i: usize) -> (usize, usize) {
        let set = ["UNION", "EXCEPT", "INTERSECT", "MINUS"];
        let (mut from, mut depth) = (0, 0i32);
        for k in (0..i).rev() {
            match self.kind(k) {
                Some(TokenKind::RParen) => depth += 1,
                Some(TokenKind::LParen) => depth -= 1,
                _ => {}
            }
            // Brackets that open around the call belong to its SELECT until the SELECT's own bracket.
            if depth <= 0 && self.is(k, "SELECT") {
                from = k;
                break;
            }
        }
        let (mut to, mut depth) = (self.tokens().len(), 0i32);
        for k in from..self.tokens().len() {
            match self.kind(k) {
                Some(TokenKind::LParen) => depth += 1,
                Some(TokenKind::RParen) => depth -= 1,
                _ => {}
            }
            if depth < 0 || (depth == 0 && k > from && set.iter().any(|w| self.is(k, w))) {
                to = k;
                break;
            }
        }
        (from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn flinks_table_functions_become_ours() {
        assert_eq!(
            rewrite("SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR)) AS w"),
            "SELECT * FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' HOUR) AS w"
        );
        assert_eq!(
            rewrite(
                "SELECT * FROM HOP(SIZE => '2 minutes', DATA => TABLE s, SLIDE => '1 minute', TIMECOL => DESCRIPTOR(ts))"
            ),
            "SELECT * FROM HOP(TABLE s, DESCRIPTOR(ts), '1 minute', '2 minutes')"
        );
    }

    #[test]
    fn window_functions_become_the_columns_of_the_querys_own_window() {
        assert_eq!(
            rewrite(
                "SELECT k, CAST(tumble_start(ts, '1 hour') AS DATE) AS d, TUMBLE_END(ts, '1 hour') FROM s GROUP BY TUMBLE(ts, '1 hour'), k HAVING tumble_end(ts, '1 hour') > now()"
            ),
            "SELECT k, CAST(window_start AS DATE) AS d, window_end FROM s GROUP BY TUMBLE(ts, '1 hour'), k HAVING window_end > now()"
        );
    }

    #[test]
    fn what_would_change_the_meaning_stays() {
        for text in [
            // another window than the one that is grouped by
            "SELECT TUMBLE_START(ts, '2 hours') FROM s GROUP BY TUMBLE(ts, '1 hour')",
            // no grouping in this SELECT
            "SELECT TUMBLE_START(ts, '1 hour') FROM s UNION ALL SELECT ts FROM s GROUP BY TUMBLE(ts, '1 hour')",
            // a column would be named anew
            "SELECT CAST(TUMBLE_START(ts, '1 hour') AS DATE) FROM s GROUP BY TUMBLE(ts, '1 hour')",
            // a comment inside
            "SELECT * FROM TUMBLE(DATA => TABLE s, /* why */ TIMECOL => DESCRIPTOR(ts), SIZE => '1 hour')",
            // not all by name
            "SELECT * FROM TUMBLE(TABLE s, TIMECOL => DESCRIPTOR(ts), SIZE => '1 hour')",
            "SELECT * FROM TABLE(s)",
        ] {
            assert_eq!(rewrite(text), text);
        }
    }
}

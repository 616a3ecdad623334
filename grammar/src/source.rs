//! Script text and places in it. [`Span`] is the only address that travels; line and column exist only in [`LineIndex`].

use std::fmt;

/// A byte range `[start, end)` of a script. Both ends lie on character borders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `[start, end)`.
    pub fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The smallest range that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether `other` lies within this range.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether the range holds no byte.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The range for slicing.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A script: its name for messages (a path, `<stdin>`, ...) and its text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    name: String,
    text: String,
    lines: LineIndex,
}

impl SourceFile {
    /// A script with this name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> SourceFile {
        let text = text.into();
        let lines = LineIndex::new(&text);
        SourceFile { name: name.into(), text, lines }
    }

    /// The name shown in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where its lines begin.
    pub fn lines(&self) -> &LineIndex {
        &self.lines
    }

    /// The text of a span; empty when the span is not of this file.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a byte position (both 1-based, the column in characters).
    pub fn line_column(&self, at: u32) -> LineColumn {
        self.lines.line_column(&self.text, at)
    }
}

/// A place as people count: 1-based line, 1-based column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
}

/// Where each line of a text begins.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes a text; lines end at `\n` (a `\r` before it belongs to the line end).
    pub fn new(text: &str) -> LineIndex {
        let mut starts = vec![0];
        starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        LineIndex { starts }
    }

    /// Number of lines, at least one.
    pub fn len(&self) -> u32 {
        self.starts.len() as u32
    }

    /// Never: even an empty text has one line.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// 1-based line of a byte position; past the end it is the last line.
    pub fn line(&self, at: u32) -> u32 {
        self.starts.partition_point(|s| *s <= at) as u32
    }

    /// The byte range of a 1-based line without its line end.
    pub fn line_span(&self, text: &str, line: u32) -> Span {
        let i = (line.max(1) - 1) as usize;
        let start = self.starts.get(i).copied().unwrap_or(text.len() as u32);
        let end = self.starts.get(i + 1).copied().unwrap_or(text.len() as u32);
        let trimmed = text[start as usize..end as usize].trim_end_matches(['\n', '\r']);
        Span::new(start, start + trimmed.len() as u32)
    }

    /// Line and column of a byte position in the indexed text.
    pub fn line_column(&self, text: &str, at: u32) -> LineColumn {
        let line = self.line(at);
        let start = self.starts[(line - 1) as usize] as usize;
        let mut end = (at as usize).min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let column = text[start.min(end)..end].chars().count() as u32 + 1;
        LineColumn { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_without_carriage_return() {
        let file = SourceFile::new("t", "a\r\nßé x\n");
        assert_eq!(file.line_column(3), LineColumn { line: 2, column: 1 });
        assert_eq!(file.line_column(8), LineColumn { line: 2, column: 4 });
        assert_eq!(file.slice(file.lines().line_span(file.text(), 1)), "a");
        assert_eq!(file.slice(file.lines().line_span(file.text(), 2)), "ßé x");
        assert_eq!(file.line_column(999), LineColumn { line: 3, column: 1 });
    }

    #[test]
    fn an_empty_text_has_one_line() {
        let file = SourceFile::new("t", "");
        assert_eq!(file.lines().len(), 1);
        assert_eq!(file.line_column(0), LineColumn { line: 1, column: 1 });
    }
}

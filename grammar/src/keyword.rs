//! The words that the statement grammar gives a meaning. None is reserved: each is a name where a name is expected.

macro_rules! keywords {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// A word of our statements.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Keyword {
            $(#[doc = $text] $variant),*
        }

        impl Keyword {
            /// The keyword of this spelling in any case.
            pub fn lookup(word: &str) -> Option<Keyword> {
                $(if word.eq_ignore_ascii_case($text) { return Some(Keyword::$variant); })*
                None
            }
        }

        /// Every spelling, upper case.
        pub const KEYWORDS: &[&str] = &[$($text),*];
    };
}

keywords! {
    Advance = "ADVANCE", After = "AFTER", All = "ALL", Any = "ANY", Append = "APPEND", As = "AS", Asm = "ASM",
    Ast = "AST", Available = "AVAILABLE", Await = "AWAIT", Batch = "BATCH", Begin = "BEGIN", By = "BY",
    Changes = "CHANGES", Checkpoint = "CHECKPOINT", Clif = "CLIF", Clock = "CLOCK", Close = "CLOSE",
    Comment = "COMMENT", Complete = "COMPLETE", Continuous = "CONTINUOUS", Create = "CREATE", Data = "DATA",
    Default = "DEFAULT", Delay = "DELAY", Desc = "DESC", Describe = "DESCRIBE", Drain = "DRAIN", Drop = "DROP",
    Emit = "EMIT", End = "END", Exists = "EXISTS", Explain = "EXPLAIN", Extended = "EXTENDED", False = "FALSE",
    Final = "FINAL", For = "FOR", Foreach = "FOREACH", Function = "FUNCTION", Functions = "FUNCTIONS",
    Identified = "IDENTIFIED", Idle = "IDLE", If = "IF", Insert = "INSERT", Interval = "INTERVAL", Into = "INTO",
    Ir = "IR", Last = "LAST", Late = "LATE", Location = "LOCATION", Logical = "LOGICAL", Max = "MAX", Not = "NOT",
    Now = "NOW", Null = "NULL", Of = "OF", On = "ON", Once = "ONCE", Options = "OPTIONS", Or = "OR",
    Partitioned = "PARTITIONED", Process = "PROCESS", Processing = "PROCESSING", Progress = "PROGRESS",
    Queries = "QUERIES", Query = "QUERY", Rejects = "REJECTS", Replace = "REPLACE", Reset = "RESET",
    Return = "RETURN", Returns = "RETURNS", Set = "SET", Show = "SHOW", Sink = "SINK", Sinks = "SINKS",
    Skew = "SKEW", Source = "SOURCE", Sources = "SOURCES", Status = "STATUS", Stop = "STOP", Stream = "STREAM",
    Streams = "STREAMS", Table = "TABLE", Tables = "TABLES", Time = "TIME", Timeout = "TIMEOUT", To = "TO",
    Trigger = "TRIGGER", True = "TRUE", Update = "UPDATE", Using = "USING", View = "VIEW", Views = "VIEWS",
    Watermark = "WATERMARK", Watermarks = "WATERMARKS", Window = "WINDOW", With = "WITH",
}

/// The words that begin a statement, for "did you mean".
pub(crate) const STATEMENT_STARTS: &[&str] = &[
    "ADVANCE", "AWAIT", "CREATE", "DESCRIBE", "DROP", "EXPLAIN", "FROM", "INSERT", "MERGE", "PROCESS", "RESET",
    "SELECT", "SET", "SHOW", "STOP", "TABLE", "VALUES", "WITH",
];

/// The words that begin a clause of a query, for "did you mean".
pub(crate) const QUERY_WORDS: &[&str] = &[
    "BETWEEN",
    "CHECKPOINT",
    "CROSS",
    "DELAY",
    "DISTINCT",
    "EMIT",
    "EXCEPT",
    "FROM",
    "GROUP",
    "HAVING",
    "INTERSECT",
    "INTERVAL",
    "JOIN",
    "LATERAL",
    "LEFT",
    "LIMIT",
    "NATURAL",
    "OFFSET",
    "ORDER",
    "PARTITION",
    "PIVOT",
    "QUALIFY",
    "RIGHT",
    "SELECT",
    "TRIGGER",
    "UNION",
    "UNPIVOT",
    "VALUES",
    "WATERMARK",
    "WHERE",
    "WINDOW",
    "WITHIN",
];

/// The nearest of these words, when it is near enough to be a slip of the hand: one edit (a swap of neighbours counts
/// as one) in up to five letters, two in more.
pub(crate) fn nearest<'w>(word: &str, among: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if word.chars().count() < 3 {
        return None;
    }
    let upper = word.to_uppercase();
    let limit = if upper.chars().count() <= 5 { 1 } else { 2 };
    among
        .into_iter()
        .map(|w| (strsim::osa_distance(&upper, w), w))
        .filter(|(d, _)| *d > 0 && *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, w)| w)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_takes_any_case() {
        assert_eq!(Keyword::lookup("waterMark"), Some(Keyword::Watermark));
        assert_eq!(Keyword::lookup("select"), None);
    }

    #[test]
    fn nearest_knows_slips_but_not_other_words() {
        assert_eq!(nearest("SELEC", STATEMENT_STARTS.iter().copied()), Some("SELECT"));
        assert_eq!(nearest("form", QUERY_WORDS.iter().copied()), Some("FROM"));
        assert_eq!(nearest("EMITT", QUERY_WORDS.iter().copied()), Some("EMIT"));
        assert_eq!(nearest("device", QUERY_WORDS.iter().copied()), None);
        assert_eq!(nearest("emit", QUERY_WORDS.iter().copied()), None);
    }
}

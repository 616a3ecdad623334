//! What the prompt's terminal shows: tables of console queries, redrawn in place where rows change, and long results by
//! the pager.

use std::io::Write;
use std::process::{Command, Stdio};

use jiff::tz::TimeZone;

use crate::output::{self, Format};
use crate::session::Outcome;

/// Where console queries write. A table arrives whole, ended by a flush.
#[derive(Default)]
pub struct Screen {
    /// Prints beside a line that is being edited.
    printer: Option<Box<dyn FnMut(String) + Send>>,
    pending: Vec<u8>,
    /// The foreground query's tables replace each other; lines of the one that is shown.
    redraw: Option<usize>,
    /// A foreground query runs: no line is being edited.
    foreground: bool,
}

impl Screen {
    /// Prints by this while a line is being edited.
    pub fn print_by(&mut self, printer: Box<dyn FnMut(String) + Send>) {
        self.printer = Some(printer);
    }

    /// A foreground query begins; `redraw`: its tables replace each other.
    pub fn begin(&mut self, redraw: bool) {
        self.foreground = true;
        self.redraw = redraw.then_some(0);
    }

    /// The foreground query has ended.
    pub fn end(&mut self) {
        self.foreground = false;
        self.redraw = None;
    }

    /// What is written for a table: behind the one shown before, or over it.
    fn placed(&mut self, text: String) -> String {
        let Some(shown) = &mut self.redraw else { return text };
        let up = std::mem::replace(shown, text.matches('\n').count());
        if up == 0 { text } else { format!("\x1b[{up}A\x1b[0J{text}") }
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned();
        if text.is_empty() {
            return Ok(());
        }
        let text = self.placed(text);
        match &mut self.printer {
            Some(print) if !self.foreground => {
                print(text);
                Ok(())
            }
            _ => {
                let mut out = std::io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
        }
    }
}

/// Prints rows as a table; one that is longer than the screen goes through `$PAGER` (`less -SFRX` if nothing is said).
pub fn page(outcome: &Outcome, zone: &TimeZone, screen_lines: Option<usize>) {
    let Outcome::Rows { names, batches } = outcome else { return };
    let rows: usize = batches.iter().map(|b| b.num_rows()).sum();
    if screen_lines.is_some_and(|lines| rows + 5 > lines)
        && let Ok(bytes) = Format::Table.bytes(names, batches, zone)
        && paged(&bytes)
    {
        return;
    }
    output::print(outcome, Format::Table, zone);
}

/// Shows text by the pager. False: there is none.
fn paged(text: &[u8]) -> bool {
    let pager = std::env::var("PAGER").ok().filter(|p| !p.trim().is_empty());
    let pager = pager.unwrap_or_else(|| "less -SFRX".to_owned());
    let mut words = pager.split_whitespace();
    let Some(program) = words.next() else { return false };
    let Ok(mut child) = Command::new(program).args(words).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // A pager that is left early reads no further.
        let _ = stdin.write_all(text);
    }
    child.wait().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_one_before() {
        let mut screen = Screen::default();
        assert_eq!(screen.placed("a\nb\n".to_owned()), "a\nb\n");
        screen.begin(true);
        assert_eq!(screen.placed("a\nb\n".to_owned()), "a\nb\n");
        assert_eq!(screen.placed("c\n".to_owned()), "\x1b[2A\x1b[0Jc\n");
        assert_eq!(screen.placed("d\n".to_owned()), "\x1b[1A\x1b[0Jd\n");
        screen.end();
        assert_eq!(screen.placed("e\n".to_owned()), "e\n");
    }
}

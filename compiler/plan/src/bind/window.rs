//! Time windows: TUMBLE, HOP, SESSION with their aliases, as functions and as tables.

use ssql_grammar::sql::{self, FunctionArg, FunctionArgExpr};
use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{CastMode, DataType, Expr, ExprKind, Literal};

use super::function::arguments;
use super::interval::IntervalValue;
use super::operators::{bigint, cast, is_null, plus_micros};
use super::{Binder, Env, GroupWindow, Scope, origin_at};
use crate::catalog::join_quoted;
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{ColumnId, EventTime, Node, Plan, WindowEnd, WindowRef};

/// How a window is computed from a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Definition {
    /// The row's time.
    time: Expr,
    shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    /// Size, slide (equal to the size for tumbling windows) and offset, in microseconds.
    Fixed { size: i64, slide: i64, offset: i64 },
    /// Time plus gap, per row.
    Session { end: Box<Expr> },
}

/// A window's name with the order of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// (time, size [, offset])
    Tumble,
    /// (time, slide, size [, offset])
    Hop,
    /// (time, gap)
    Session,
    /// (time, size [, slide [, offset]]), Spark's order
    Window,
}

/// Which column of the window a call gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Start,
    End,
    Time,
}

fn form(name: &str) -> Option<(Form, Part)> {
    let (base, part) = match name.rsplit_once('_') {
        Some((base @ ("tumble" | "hop" | "session"), "start")) => (base, Part::Start),
        Some((base @ ("tumble" | "hop" | "session"), "end")) => (base, Part::End),
        Some((base @ ("tumble" | "hop" | "session"), "rowtime" | "time")) => (base, Part::Time),
        _ => (name, Part::Whole),
    };
    Some((
        match base {
            "tumble" => Form::Tumble,
            "hop" => Form::Hop,
            "session" | "session_window" => Form::Session,
            "window" => Form::Window,
            _ => return None,
        },
        part,
    ))
}

/// The window column that a call such as `tumble_start` stands for.
pub(super) fn column_of(name: &str) -> Option<&'static str> {
    match form(name)?.1 {
        Part::Whole => None,
        Part::Start => Some("window_start"),
        Part::End => Some("window_end"),
        Part::Time => Some("window_time"),
    }
}

impl<'a> Binder<'a> {
    /// A call that names a time window; None if the name is none of theirs.
    pub(super) fn bind_window_call(
        &mut self,
        name: &str,
        f: &'a sql::Function,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Option<Expr>> {
        let Some((form, part)) = form(name) else { return Ok(None) };
        if self.catalog.function(name).is_some() {
            return Ok(None);
        }
        let Some(slot) = env.window else {
            return fail_help(
                "UNSUPPORTED_EXPR_FOR_OPERATOR",
                format!("the time window `{name}` cannot stand here"),
                span,
                "Put it into GROUP BY or SELECT.",
            );
        };
        let args = self.argument_asts(name, f, span)?;
        if args.first().is_some_and(|a| self.clauses.table_argument(a).is_some()) {
            return fail_help(
                "UNSUPPORTED_EXPR_FOR_OPERATOR",
                format!("`{name}` over a TABLE makes rows and stands in FROM"),
                span,
                format!("Write FROM {0}(TABLE s, ...), or {0}(ts, ...) here.", name.to_uppercase()),
            );
        }
        let input = Env { aggs: None, analytics: None, window: None, ..*env };
        let definition = self.bind_definition(form, name, &args, span, &input)?;
        let known = slot.borrow().clone();
        let window = match known {
            Some(known) if known.definition.as_ref() == Some(&definition) => known,
            Some(_) => {
                return fail_help(
                    "UNSUPPORTED_FEATURE.MULTIPLE_TIME_WINDOWS",
                    "a query can have one time window only",
                    span,
                    "Group by one window here and by the other in an outer query, over window_time(window).",
                );
            }
            None => {
                let window = self.new_window(definition, span);
                *slot.borrow_mut() = Some(window.clone());
                window
            }
        };
        let r = WindowRef { start: window.start, end: window.end };
        let e = match part {
            Part::Whole => self.window_struct(window.start, window.end),
            Part::Start => self.columns.expr(window.start),
            Part::End => self.window_end(r),
            Part::Time => self.window_time(r),
        };
        Ok(Some(e.at(origin_at(span))))
    }

    fn bind_definition(
        &mut self,
        form: Form,
        name: &str,
        args: &[&'a sql::Expr],
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Definition> {
        let (usage, range) = match form {
            Form::Tumble => ("TUMBLE(ts, size [, offset])", 2..=3),
            Form::Hop => ("HOP(ts, slide, size [, offset])", 3..=4),
            Form::Session => ("SESSION(ts, gap)", 2..=2),
            Form::Window => ("window(ts, size [, slide [, offset]])", 2..=4),
        };
        if !range.contains(&args.len()) {
            return fail_help(
                "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                match args.len() {
                    1 => format!("`{name}` does not take 1 argument"),
                    n => format!("`{name}` does not take {n} arguments"),
                },
                span,
                format!("Write {usage}."),
            );
        }
        let time = self.bind_expr(args[0], env)?;
        let at = self.span(args[0]);
        if matches!(time.data_type, DataType::DayTimeInterval(..) | DataType::YearMonthInterval(..)) {
            return fail_help(
                "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                format!("`{name}` takes the time column first, and this is an interval"),
                at,
                format!("Write {usage}."),
            );
        }
        let time = self.window_source(time, name, at, env.scope)?;
        if form == Form::Session {
            let end = self.bind_session_end(&time, args[1], env)?;
            return Ok(Definition { time, shape: Shape::Session { end: Box::new(end) } });
        }
        let mut intervals = vec![];
        for (arg, what) in args[1..].iter().zip(match form {
            Form::Hop => ["the slide", "the window's size", "the offset"],
            Form::Window => ["the window's size", "the slide", "the offset"],
            _ => ["the window's size", "the offset", ""],
        }) {
            let value = self.bind_interval(arg, what)?;
            intervals.push((self.fixed(value, what, self.span(*arg))?, self.span(*arg)));
        }
        let get = |i: usize| intervals.get(i).copied();
        let (size, slide, offset) = match form {
            Form::Hop => (intervals[1], intervals[0], get(2)),
            Form::Window => (intervals[0], get(1).unwrap_or(intervals[0]), get(2)),
            _ => (intervals[0], intervals[0], get(1)),
        };
        for (value, what, at) in [(size.0, "the window's size", size.1), (slide.0, "the slide", slide.1)] {
            if value <= 0 {
                return fail("DATATYPE_MISMATCH.VALUE_OUT_OF_RANGE", format!("{what} must be longer than zero"), at);
            }
        }
        if slide.0 > size.0 {
            let mut help = "Windows with gaps between them would lose rows.".to_string();
            if form == Form::Hop {
                help = format!(
                    "Are the arguments swapped? HOP takes the slide first, {usage}; Spark's window(ts, size, slide) is known too."
                );
            }
            return Err(Box::new(
                Diagnostic::error(
                    "DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION",
                    "the slide is longer than the window",
                )
                .at_with(slide.1, "the slide")
                .with_label(size.1, "the window's size")
                .with_help(help),
            ));
        }
        if let Some((value, at)) = offset
            && value.unsigned_abs() >= slide.0.unsigned_abs()
        {
            return fail(
                "DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION",
                "the offset must be shorter than the distance of two windows",
                at,
            );
        }
        let offset = offset.map_or(0, |o| o.0);
        Ok(Definition { time, shape: Shape::Fixed { size: size.0, slide: slide.0, offset } })
    }

    fn fixed(&self, value: IntervalValue, what: &str, span: Span) -> Fallible<i64> {
        if value.months != 0 {
            return fail_help(
                "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                format!("{what} cannot be given in months, which differ in length"),
                span,
                "Give it in days.",
            );
        }
        Ok(value.micros)
    }

    /// The time of a row: a timestamp, or a window, whose last microsecond it is.
    fn window_source(&self, time: Expr, name: &str, span: Span, scope: &Scope) -> Fallible<Expr> {
        if let Some(w) = self.window_ref(&time) {
            return Ok(self.window_time(w));
        }
        match time.data_type {
            DataType::Timestamp | DataType::TimestampNtz => Ok(time),
            DataType::Date => Ok(cast(time, &DataType::Timestamp, CastMode::Ansi)),
            ref other => {
                let message = format!("`{name}` needs a TIMESTAMP, not {other}");
                let condition = "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE";
                match self.timestamps(scope) {
                    Some(names) => fail_help(condition, message, span, format!("These columns could serve: {names}.")),
                    None => fail_help(condition, message, span, "Convert it, for example with CAST(... AS TIMESTAMP)."),
                }
            }
        }
    }

    /// The TIMESTAMP columns of a scope, quoted.
    pub(super) fn timestamps(&self, scope: &Scope) -> Option<String> {
        let names: Vec<&str> = scope
            .star()
            .filter(|c| self.columns.get(c.id).data_type == DataType::Timestamp)
            .map(|c| c.name.as_str())
            .collect();
        (!names.is_empty()).then(|| join_quoted(names))
    }

    /// Where a row's session span ends.
    fn bind_session_end(&mut self, time: &Expr, gap: &'a sql::Expr, env: &Env<'_>) -> Fallible<Expr> {
        let span = self.span(gap);
        if matches!(gap, sql::Expr::Interval(_)) || matches!(gap, sql::Expr::Value(_)) {
            let value = self.bind_interval(gap, "the gap")?;
            let mut end = time.clone();
            if value.months != 0 {
                let months = Expr::literal(Literal::Int(i64::from(value.months)), DataType::YEAR_TO_MONTH);
                end = self.call("+", vec![end, months], span)?;
            }
            if value.micros != 0 || value.months == 0 {
                end = plus_micros(end, value.micros);
            }
            return Ok(end);
        }
        let gap = self.bind_expr(gap, env)?;
        match gap.data_type {
            DataType::DayTimeInterval(..) | DataType::YearMonthInterval(..) => {
                self.call("+", vec![time.clone(), gap], span)
            }
            // A text per row; what is no interval gives NULL, and the row is in no session.
            DataType::String => {
                let time = time.clone();
                Ok(Expr::call("session_end", vec![time, gap], DataType::Timestamp, true).at(origin_at(span)))
            }
            other => fail_help(
                "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                format!("the gap must be an interval, not {other}"),
                span,
                "Write for example SESSION(ts, INTERVAL 5 MINUTES).",
            ),
        }
    }

    /// Columns for a window, with their role as event time.
    fn new_window(&mut self, definition: Definition, span: Span) -> GroupWindow {
        let role = self.event_time_of(&definition.time).filter(|t| t.add_micros == 0);
        let data_type = definition.time.data_type.clone();
        let start = self.columns.add("window_start", data_type.clone(), false);
        self.columns.get_mut(start).window_edge = true;
        let group = self.new_group();
        match &definition.shape {
            Shape::Fixed { size, .. } => {
                self.columns.get_mut(start).event_time = role.map(|_| EventTime { group, add_micros: *size });
                let end = WindowEnd::Size(*size);
                GroupWindow { start, end, session: false, definition: Some(definition), span }
            }
            Shape::Session { .. } => {
                let end = self.columns.add("window_end", data_type, false);
                self.columns.get_mut(end).window_edge = true;
                self.columns.get_mut(end).event_time = role.map(|_| EventTime { group, add_micros: 0 });
                let end = WindowEnd::Column(end);
                GroupWindow { start, end, session: true, definition: Some(definition), span }
            }
        }
    }

    /// The plan with the window's columns added to each row; rows that are in no window are dropped.
    pub(super) fn assign_window(&mut self, plan: Plan, window: &GroupWindow) -> Plan {
        let Some(definition) = &window.definition else { return plan };
        let span = window.span;
        let time = &definition.time;
        let mut plan = plan;
        if time.nullable {
            plan = plan.filter(is_null(time.clone(), true), span);
        }
        let mut time = time.clone();
        time.nullable = false;
        match &definition.shape {
            Shape::Fixed { size, slide, offset } if size == slide => {
                let data_type = time.data_type.clone();
                let start = Expr::call("window_start", vec![time, bigint(*size), bigint(*offset)], data_type, false);
                self.extend(plan, vec![(window.start, start.at(origin_at(span)))], span)
            }
            Shape::Fixed { size, slide, offset } => {
                let (plan, time) = self.as_column(plan, time, span);
                let node =
                    Node::AssignWindows { time, start: window.start, size: *size, slide: *slide, offset: *offset };
                Plan::over(node, plan, span)
            }
            Shape::Session { end } => {
                let WindowEnd::Column(end_id) = window.end else { return plan };
                let (start, end) = (time, (**end).clone());
                let later = Expr::call(">", vec![end.clone(), start.clone()], DataType::Boolean, end.nullable);
                let plan = plan.filter(later, span);
                self.extend(plan, vec![(window.start, start), (end_id, end)], span)
            }
        }
    }

    /// The plan with further columns.
    pub(super) fn extend(&mut self, plan: Plan, more: Vec<(ColumnId, Expr)>, span: Span) -> Plan {
        if more.is_empty() {
            return plan;
        }
        let mut columns: Vec<(ColumnId, Expr)> =
            plan.outputs().into_iter().map(|id| (id, self.columns.expr(id))).collect();
        columns.extend(more);
        Plan::over(Node::Project { columns }, plan, span)
    }

    /// The plan with the expression as a column of it.
    pub(super) fn as_column(&mut self, plan: Plan, e: Expr, span: Span) -> (Plan, ColumnId) {
        if let ExprKind::Column(id) = e.kind {
            return (plan, id);
        }
        let id = self.columns.add("expr", e.data_type.clone(), e.nullable);
        self.columns.get_mut(id).event_time = self.event_time_of(&e);
        (self.extend(plan, vec![(id, e)], span), id)
    }

    /// `TUMBLE(TABLE s, DESCRIPTOR(ts), size)` and kin in FROM; None if the name is none of theirs.
    pub(super) fn bind_window_table(
        &mut self,
        name: &str,
        args: &'a [FunctionArg],
        span: Span,
        outer: Option<&Env<'_>>,
    ) -> Fallible<Option<super::Rel>> {
        let Some((form @ (Form::Tumble | Form::Hop | Form::Session), Part::Whole)) = form(name) else {
            return Ok(None);
        };
        let names: &[&str] = match form {
            Form::Tumble => &["data", "timecol", "size", "offset"],
            Form::Hop => &["data", "timecol", "slide", "size", "offset"],
            _ => &["data", "timecol", "gap"],
        };
        let mut given: Vec<Option<&'a sql::Expr>> = vec![None; names.len()];
        for (i, arg) in args.iter().enumerate() {
            let (slot, e) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => (Some(i), e),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(e), .. } => {
                    (names.iter().position(|n| n.eq_ignore_ascii_case(&name.value)), e)
                }
                _ => return self.not_in_dialect(&format!("this argument of `{name}`"), span),
            };
            match slot.and_then(|s| given.get_mut(s)) {
                Some(place) => *place = Some(e),
                None => {
                    return fail_help(
                        "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                        format!("`{name}` does not take this argument"),
                        span,
                        format!("Its arguments are: {}.", names.join(", ").to_uppercase()),
                    );
                }
            }
        }
        let (Some(table), Some(descriptor)) = (given[0], given[1]) else {
            return fail_help(
                "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                format!("`{name}` needs a table and a time column"),
                span,
                format!("Write {}(TABLE s, DESCRIPTOR(ts), ...).", name.to_uppercase()),
            );
        };
        let clauses = self.clauses;
        let rel = self.bind_table_argument(table, outer)?;
        let time = match descriptor {
            sql::Expr::Function(f) if super::function::function_name(f) == "descriptor" && arguments(f).len() == 1 => {
                self.argument_asts("descriptor", f, span)?[0]
            }
            other => other,
        };
        let mut asts = vec![time];
        asts.extend(given[2..].iter().flatten());
        let env = Env { outer, ..Env::new(&rel.scope, super::Clause::Other) };
        let definition = self.bind_definition(form, name, &asts, span, &env)?;
        if let Some(partition) = clauses.table_argument(table) {
            for e in &partition.partition_by {
                self.bind_expr(&e.sql, &env)?;
            }
        }
        let window = self.new_window(definition, span);
        let mut plan = self.assign_window(rel.plan, &window);
        let mut scope = rel.scope;
        let r = WindowRef { start: window.start, end: window.end };
        let time = self.window_time(r);
        let time_id = self.columns.add("window_time", time.data_type.clone(), false);
        self.columns.get_mut(time_id).event_time = self.event_time_of(&time);
        let mut more = vec![];
        let end_id = match window.end {
            WindowEnd::Column(id) => id,
            WindowEnd::Size(_) => {
                let end = self.window_end(r);
                let id = self.columns.add("window_end", end.data_type.clone(), false);
                more.push((id, end));
                id
            }
        };
        more.push((time_id, time));
        plan = self.extend(plan, more, span);
        for (name, id) in [("window_start", window.start), ("window_end", end_id), ("window_time", time_id)] {
            scope.add(None, name, id);
        }
        if window.session {
            scope.session = Some(super::SessionRows { start: window.start, end: end_id, span });
        }
        Ok(Some(super::Rel { plan, scope }))
    }
}

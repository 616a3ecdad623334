//! Resolution of column names: qualifiers, struct fields, aliases, enclosing queries.

use ssql_grammar::sql;
use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{DataType, Expr, ExprKind};

use super::operators::string;
use super::{Binder, Clause, Env, LambdaFrame, ScopeColumn, origin_at};
use crate::catalog::{join_quoted, suggest};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::WindowEnd;

/// What a name was found to be, with the number of its parts that were used up.
struct Found {
    expr: Expr,
    used: usize,
}

impl<'a> Binder<'a> {
    /// A name of one or more parts: `[qualifier.]column[.field]*`.
    pub(super) fn bind_name(&mut self, parts: &[&sql::Ident], span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let mut at = Some(env);
        while let Some(env) = at {
            if let Some(found) = self.find(parts, span, env)? {
                let mut expr = found.expr.at(origin_at(span));
                for part in &parts[found.used..] {
                    expr = self.field(expr, &part.value, span)?;
                }
                return Ok(expr);
            }
            at = env.outer;
        }
        Err(self.unresolved(parts, span, env))
    }

    fn find(&mut self, parts: &[&sql::Ident], span: Span, env: &Env<'_>) -> Fallible<Option<Found>> {
        let first = parts[0].value.as_str();
        let one = |expr: Expr| Ok(Some(Found { expr, used: 1 }));
        if let Some(e) = lambda_variable(env.lambda, first) {
            return one(e);
        }
        if env.alias_first
            && let Some(e) = self.find_alias(first, span, env)?
        {
            return one(e);
        }
        if let Some(found) = self.find_column(parts, span, env)? {
            return Ok(Some(found));
        }
        if let Some((_, e)) = env.params.iter().find(|(n, _)| n.eq_ignore_ascii_case(first)) {
            return one(e.clone());
        }
        if !env.alias_first
            && let Some(e) = self.find_alias(first, span, env)?
        {
            return one(e);
        }
        if let Some(e) = self.find_window_name(first, env) {
            return one(e);
        }
        Ok(None)
    }

    fn find_column(&mut self, parts: &[&sql::Ident], span: Span, env: &Env<'_>) -> Fallible<Option<Found>> {
        if parts.len() > 1 {
            let (qualifier, name) = (&parts[0].value, &parts[1].value);
            let hits: Vec<&ScopeColumn> = env
                .scope
                .columns
                .iter()
                .filter(|c| c.qualifier.as_ref().is_some_and(|q| same(q, qualifier)) && same(&c.name, name))
                .collect();
            if let Some(id) = self.unique(&hits, &format!("{qualifier}.{name}"), span)? {
                return Ok(Some(Found { expr: self.columns.expr(id), used: 2 }));
            }
        }
        let name = &parts[0].value;
        let hits: Vec<&ScopeColumn> = env.scope.columns.iter().filter(|c| c.bare && same(&c.name, name)).collect();
        if hits.is_empty() && parts.len() == 1 {
            return Ok(None);
        }
        // `window_start` and kin always mean the window of this query.
        if env.window.is_some_and(|w| w.borrow().is_some())
            && hits.iter().all(|c| is_window_name(&c.name))
            && is_window_name(name)
            && !hits.is_empty()
        {
            return Ok(self.find_window_name(name, env).map(|expr| Found { expr, used: 1 }));
        }
        Ok(self.unique(&hits, name, span)?.map(|id| Found { expr: self.columns.expr(id), used: 1 }))
    }

    fn unique(&self, hits: &[&ScopeColumn], name: &str, span: Span) -> Fallible<Option<u32>> {
        match hits {
            [] => Ok(None),
            [one] => Ok(Some(one.id)),
            many => {
                let names: Vec<String> = many
                    .iter()
                    .map(|c| match &c.qualifier {
                        Some(q) => format!("{q}.{}", c.name),
                        None => c.name.clone(),
                    })
                    .collect();
                let names = join_quoted(names.iter().map(String::as_str));
                fail_help(
                    "AMBIGUOUS_REFERENCE",
                    format!("`{name}` may mean more than one column"),
                    span,
                    format!("Say which one is meant: {names}."),
                )
            }
        }
    }

    fn find_alias(&self, name: &str, span: Span, env: &Env<'_>) -> Fallible<Option<Expr>> {
        let mut hits = env.aliases.iter().filter(|a| same(&a.name, name));
        let Some(first) = hits.next() else { return Ok(None) };
        if hits.any(|other| other.expr != first.expr) {
            return fail_help(
                "AMBIGUOUS_LATERAL_COLUMN_ALIAS",
                format!("`{name}` names more than one item of this SELECT list"),
                span,
                "Give the items different names.",
            );
        }
        Ok(Some(first.expr.clone()))
    }

    /// `window_start`, `window_end`, `window_time`, `window`, `session_window` of the query's own window.
    fn find_window_name(&self, name: &str, env: &Env<'_>) -> Option<Expr> {
        let slot = env.window?.borrow();
        let w = slot.as_ref()?;
        let r = crate::logical::WindowRef { start: w.start, end: w.end };
        Some(match name.to_ascii_lowercase().as_str() {
            "window_start" => self.columns.expr(w.start),
            "window_end" => self.window_end(r),
            "window_time" => self.window_time(r),
            "window" if !w.session => self.window_struct(w.start, w.end),
            "session_window" if w.session => self.window_struct(w.start, w.end),
            _ => return None,
        })
    }

    /// Field `name` of a struct (or of each struct of an array, or value of a map).
    pub(super) fn field(&mut self, base: Expr, name: &str, span: Span) -> Fallible<Expr> {
        if let Some(w) = self.window_ref(&base) {
            match name.to_ascii_lowercase().as_str() {
                "start" => return Ok(self.columns.expr(w.start).at(origin_at(span))),
                "end" => {
                    return Ok(match w.end {
                        // A copy with no role: the end of a window is no event time in Spark.
                        WindowEnd::Column(_) | WindowEnd::Size(_) => self.window_end(w).at(origin_at(span)),
                    });
                }
                _ => {}
            }
        }
        match &base.data_type {
            DataType::Struct(fields) => {
                let hits: Vec<_> = fields.iter().filter(|f| same(&f.name, name)).collect();
                match hits.as_slice() {
                    [field] => {
                        let nullable = base.nullable || field.nullable;
                        let (exact, data_type) = (field.name.clone(), field.data_type.clone());
                        // A field of a struct that is put together right here is the value itself.
                        if let ExprKind::Call { function, args } = &base.kind
                            && &**function == "named_struct"
                            && let Some(i) = fields.iter().position(|f| f.name == exact)
                            && let Some(value) = args.get(2 * i + 1)
                            && super::same_type(&value.data_type, &data_type)
                        {
                            return Ok(value.clone());
                        }
                        Ok(Expr::call("get_field", vec![base, string(&exact)], data_type, nullable).at(origin_at(span)))
                    }
                    [] => {
                        let d =
                            Diagnostic::error("FIELD_NOT_FOUND", format!("the struct has no field `{name}`")).at(span);
                        Err(Box::new(match suggest(name, fields.iter().map(|f| f.name.as_str())) {
                            Some(near) => d.with_help(format!("Did you mean `{near}`?")),
                            None => d.with_help(format!(
                                "Its fields are: {}.",
                                join_quoted(fields.iter().map(|f| f.name.as_str()))
                            )),
                        }))
                    }
                    _ => fail(
                        "AMBIGUOUS_REFERENCE_TO_FIELDS",
                        format!("the struct has more than one field `{name}`"),
                        span,
                    ),
                }
            }
            DataType::Map(..) => self.call("[]", vec![base, string(name)], span),
            DataType::Array(element) => match &element.data_type {
                DataType::Struct(fields) => match fields.iter().find(|f| same(&f.name, name)) {
                    Some(field) => {
                        let data_type = DataType::array(field.data_type.clone());
                        let (exact, nullable) = (field.name.clone(), base.nullable);
                        Ok(Expr::call("get_field", vec![base, string(&exact)], data_type, nullable).at(origin_at(span)))
                    }
                    None => fail("FIELD_NOT_FOUND", format!("the structs of the array have no field `{name}`"), span),
                },
                _ => fail_help(
                    "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                    format!("{} has no field `{name}`", base.data_type),
                    span,
                    "An element of an array is taken by its number: `a[0]`.",
                ),
            },
            other => fail(
                "INVALID_EXTRACT_BASE_FIELD_TYPE",
                format!("a field `{name}` can be taken of a STRUCT only, not of {other}"),
                span,
            ),
        }
    }

    /// The diagnostic for a name that means nothing here.
    pub(super) fn unresolved(&self, parts: &[&sql::Ident], span: Span, env: &Env<'_>) -> Box<Diagnostic> {
        let written = parts.iter().map(|p| p.value.as_str()).collect::<Vec<_>>().join(".");
        let mut known: Vec<String> = vec![];
        let mut at = Some(env);
        while let Some(env) = at {
            for column in &env.scope.columns {
                if parts.len() > 1
                    && let Some(q) = &column.qualifier
                {
                    known.push(format!("{q}.{}", column.name));
                } else {
                    known.push(column.name.clone());
                }
            }
            known.extend(env.aliases.iter().map(|a| a.name.clone()));
            at = env.outer;
        }
        let mut seen = std::collections::HashSet::new();
        known.retain(|name| seen.insert(name.clone()));
        let lower = written.to_ascii_lowercase();
        if is_window_name(&lower) || lower.starts_with("window.") {
            let d = Diagnostic::error(
                if known.is_empty() {
                    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"
                } else {
                    "UNRESOLVED_COLUMN.WITH_SUGGESTION"
                },
                format!("`{written}` stands in a query without a time window"),
            );
            return Box::new(d.at(span).with_help("Add GROUP BY TUMBLE(ts, INTERVAL 5 MINUTES) or another window."));
        }
        if let [only] = parts
            && only.quote_style == Some('"')
        {
            let d = Diagnostic::error(
                if known.is_empty() {
                    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"
                } else {
                    "UNRESOLVED_COLUMN.WITH_SUGGESTION"
                },
                format!("there is no column `{written}`"),
            );
            let help =
                format!("Double quotes hold names. A string takes single quotes: '{}'.", written.replace('\'', "''"));
            return Box::new(d.at(span).with_help(help));
        }
        if known.is_empty() {
            let message = format!("there is no column `{written}`, for no relation is in scope");
            return Box::new(Diagnostic::error("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", message).at(span));
        }
        let clause = match env.clause {
            Clause::Where => " in WHERE",
            Clause::On => " in ON",
            _ => "",
        };
        let d =
            Diagnostic::error("UNRESOLVED_COLUMN.WITH_SUGGESTION", format!("there is no column `{written}`{clause}"));
        let near = suggest(&written, known.iter().map(String::as_str)).or_else(|| {
            let last = parts.last().map(|p| p.value.as_str()).unwrap_or_default();
            known.iter().map(String::as_str).find(|k| k.rsplit('.').next().is_some_and(|n| same(n, last)))
        });
        Box::new(match near {
            Some(near) => d.at(span).with_help(format!("Did you mean `{near}`?")),
            None => d.at(span).with_help(format!("Columns here: {}.", join_quoted(known.iter().map(String::as_str)))),
        })
    }
}

/// Whether two names are the same.
pub(super) fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || a.to_lowercase() == b.to_lowercase()
}

fn is_window_name(name: &str) -> bool {
    ["window_start", "window_end", "window_time"].iter().any(|n| same(n, name))
}

fn lambda_variable(mut frame: Option<&LambdaFrame<'_>>, name: &str) -> Option<Expr> {
    while let Some(f) = frame {
        if let Some(p) = f.params.iter().find(|p| same(&p.name, name)) {
            return Some(Expr {
                kind: ExprKind::LambdaVariable(p.id),
                data_type: p.data_type.clone(),
                nullable: p.nullable,
                origin: Default::default(),
            });
        }
        frame = f.outer;
    }
    None
}

//! Expressions: every form of sqlparser's tree that the dialect has, to the IR's kinds.

use ssql_grammar::Span;
use ssql_grammar::sql::{self, AccessExpr, BinaryOperator as B, CastKind, Subscript, UnaryOperator, Value};
use ssql_ir::{CastMode, DataType, Expr, ExprKind, Field, Literal};

use super::operators::{and, boolean, cast, is_null, not, or, resolve_error, retyped, string};
use super::{Binder, Env, literal, origin_at};
use crate::diag::{Fallible, fail, fail_help};

impl<'a> Binder<'a> {
    /// Binds an expression.
    pub(super) fn bind_expr(&mut self, e: &'a sql::Expr, env: &Env<'_>) -> Fallible<Expr> {
        use sql::Expr as E;
        let span = self.span(e);
        match e {
            E::Nested(inner) => self.bind_expr(inner, env),
            E::Identifier(ident) => self.bind_name(&[ident], span, env),
            E::CompoundIdentifier(parts) => self.bind_name(&parts.iter().collect::<Vec<_>>(), span, env),
            E::CompoundFieldAccess { root, access_chain } => self.bind_access(root, access_chain, span, env),
            E::Value(v) => self.bind_value(v, span),
            E::TypedString(t) => self.bind_typed_string(t, span),
            E::Interval(i) => self.bind_interval_literal(i, e, env),
            E::UnaryOp { op, expr } => self.bind_unary(op, expr, span, env),
            E::BinaryOp { left, op, right } => self.bind_binary(left, op, right, span, env),
            E::IsNull(x) => Ok(is_null(self.bind_expr(x, env)?, false).at(origin_at(span))),
            E::IsNotNull(x) => Ok(is_null(self.bind_expr(x, env)?, true).at(origin_at(span))),
            E::IsUnknown(x) => Ok(is_null(self.bind_predicate(x, env)?, false).at(origin_at(span))),
            E::IsNotUnknown(x) => Ok(is_null(self.bind_predicate(x, env)?, true).at(origin_at(span))),
            E::IsTrue(x) => Ok(true_or_false(self.bind_predicate(x, env)?)),
            E::IsNotTrue(x) => Ok(not(true_or_false(self.bind_predicate(x, env)?))),
            E::IsFalse(x) => Ok(true_or_false(not(self.bind_predicate(x, env)?))),
            E::IsNotFalse(x) => Ok(not(true_or_false(not(self.bind_predicate(x, env)?)))),
            E::IsDistinctFrom(a, b) => {
                let (a, b) = (self.bind_expr(a, env)?, self.bind_expr(b, env)?);
                Ok(not(self.equal("<=>", a, b, span)?))
            }
            E::IsNotDistinctFrom(a, b) => {
                let (a, b) = (self.bind_expr(a, env)?, self.bind_expr(b, env)?);
                self.equal("<=>", a, b, span)
            }
            E::Between { expr, negated, low, high } => {
                let x = self.bind_expr(expr, env)?;
                let (low, high) = (self.bind_expr(low, env)?, self.bind_expr(high, env)?);
                let within = and(self.call(">=", vec![x.clone(), low], span)?, self.call("<=", vec![x, high], span)?);
                Ok(if *negated { not(within) } else { within })
            }
            E::In { expr, target, negated, .. } => match target {
                sql::InTarget::List(list) => self.bind_in_list(expr, list, *negated, span, env),
                sql::InTarget::Subquery(query) => self.bind_in_subquery(expr, query, *negated, span, env),
                _ => self.not_in_dialect("this form of IN", span),
            },
            E::Exists { subquery, negated } => self.bind_exists(subquery, *negated, span, env),
            E::Subquery(query) => self.bind_scalar_subquery(query, span, env),
            E::Like { negated, any, expr, pattern, escape_char } => {
                self.bind_like("like", *negated, *any, expr, pattern, escape_char.as_deref(), span, env)
            }
            E::ILike { negated, any, expr, pattern, escape_char } => {
                self.bind_like("ilike", *negated, *any, expr, pattern, escape_char.as_deref(), span, env)
            }
            E::RLike { negated, expr, pattern, .. } => {
                let args = vec![self.bind_expr(expr, env)?, self.bind_expr(pattern, env)?];
                let matched = self.call("rlike", args, span)?;
                Ok(if *negated { not(matched) } else { matched })
            }
            E::Cast { kind, expr, data_type, .. } => self.bind_cast(kind, expr, data_type, span, env),
            E::Case { operand, conditions, else_result, .. } => {
                self.bind_case(operand.as_deref(), conditions, else_result.as_deref(), span, env)
            }
            E::Extract { field, expr, .. } => {
                let x = self.bind_expr(expr, env)?;
                self.call("extract", vec![string(&field.to_string().to_ascii_lowercase()), x], span)
            }
            E::Ceil { expr, field } => self.bind_rounding("ceil", expr, field, span, env),
            E::Floor { expr, field } => self.bind_rounding("floor", expr, field, span, env),
            E::Position { expr, r#in } => {
                let args = vec![self.bind_expr(expr, env)?, self.bind_expr(r#in, env)?];
                self.call("position", args, span)
            }
            E::Substring { expr, substring_from, substring_for, .. } => {
                let mut args = vec![self.bind_expr(expr, env)?];
                for arg in [substring_from, substring_for].into_iter().flatten() {
                    args.push(self.bind_expr(arg, env)?);
                }
                self.call("substring", args, span)
            }
            E::Trim { trim_where, trim_what, expr, trim_characters } => {
                let x = self.bind_expr(expr, env)?;
                let mut what = vec![];
                if let Some(w) = trim_what.as_deref().or_else(|| trim_characters.as_ref().and_then(|c| c.first())) {
                    what.push(self.bind_expr(w, env)?);
                }
                match trim_where {
                    Some(sql::TrimWhereField::Leading) => self.call("ltrim", [what, vec![x]].concat(), span),
                    Some(sql::TrimWhereField::Trailing) => self.call("rtrim", [what, vec![x]].concat(), span),
                    _ => self.call("btrim", [vec![x], what].concat(), span),
                }
            }
            E::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut args = vec![];
                for arg in
                    [Some(expr), Some(overlay_what), Some(overlay_from), overlay_for.as_ref()].into_iter().flatten()
                {
                    args.push(self.bind_expr(arg, env)?);
                }
                self.call("overlay", args, span)
            }
            E::Function(f) => self.bind_function(f, span, env),
            E::Tuple(items) => {
                let items = items.iter().map(|i| self.bind_expr(i, env)).collect::<Fallible<Vec<_>>>()?;
                Ok(struct_of(items.into_iter().map(|e| (None, e)).collect()).at(origin_at(span)))
            }
            E::Struct { values, .. } => {
                let mut items = vec![];
                for value in values {
                    items.push(match value {
                        E::Named { expr, name } => (Some(name.value.clone()), self.bind_expr(expr, env)?),
                        other => (implicit_name(other), self.bind_expr(other, env)?),
                    });
                }
                Ok(struct_of(items).at(origin_at(span)))
            }
            E::Named { expr, .. } => self.bind_expr(expr, env),
            E::Array(array) => {
                let items = array.elem.iter().map(|i| self.bind_expr(i, env)).collect::<Fallible<Vec<_>>>()?;
                self.call("array", items, span)
            }
            E::Lambda(_) => fail_help(
                "UNSUPPORTED_EXPR_FOR_OPERATOR",
                "a lambda stands here where no function takes one",
                span,
                "Lambdas are arguments of transform, filter, exists, forall, aggregate and their kin.",
            ),
            E::Collate { .. } => self.not_in_dialect("COLLATE", span),
            E::AtTimeZone { .. } => fail_help(
                "UNSUPPORTED_FEATURE.AT_TIME_ZONE",
                "AT TIME ZONE is not part of this dialect",
                span,
                "Use from_utc_timestamp(ts, zone) or to_utc_timestamp(ts, zone).",
            ),
            E::Wildcard(_) | E::QualifiedWildcard(..) => {
                fail("INVALID_USAGE_OF_STAR_OR_REGEX", "`*` stands for columns only in SELECT and in count(*)", span)
            }
            E::GroupingSets(_) | E::Cube(_) | E::Rollup(_) => {
                fail("UNSUPPORTED_GROUPING_EXPRESSION", "GROUPING SETS, CUBE and ROLLUP stand in GROUP BY only", span)
            }
            other => self.not_in_dialect(&format!("the expression `{other}`"), span),
        }
    }

    /// A BOOLEAN expression.
    pub(super) fn bind_predicate(&mut self, e: &'a sql::Expr, env: &Env<'_>) -> Fallible<Expr> {
        let bound = self.bind_expr(e, env)?;
        let span = self.span(e);
        self.to_boolean(bound, "a condition", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", span)
    }

    pub(super) fn not_in_dialect<T>(&self, what: &str, span: Span) -> Fallible<T> {
        fail("UNSUPPORTED_FEATURE", format!("{what} is not part of this dialect"), span)
    }

    fn bind_access(
        &mut self,
        root: &'a sql::Expr,
        chain: &'a [AccessExpr],
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        // Leading dots belong to the name, so that `t.c.f` finds the relation `t` first.
        let mut parts: Vec<&sql::Ident> = match root {
            sql::Expr::Identifier(i) => vec![i],
            sql::Expr::CompoundIdentifier(p) => p.iter().collect(),
            _ => vec![],
        };
        let mut rest = chain;
        if !parts.is_empty() {
            while let Some((AccessExpr::Dot(sql::Expr::Identifier(i)), more)) = rest.split_first() {
                parts.push(i);
                rest = more;
            }
        }
        let mut value = if parts.is_empty() { self.bind_expr(root, env)? } else { self.bind_name(&parts, span, env)? };
        for access in rest {
            value = match access {
                AccessExpr::Dot(sql::Expr::Identifier(i)) => self.field(value, &i.value, span)?,
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let index = self.bind_expr(index, env)?;
                    match (&value.data_type, &index.kind) {
                        (DataType::Struct(_), ExprKind::Literal(Literal::String(name))) => {
                            let name = name.clone();
                            self.field(value, &name, span)?
                        }
                        _ => self.call("[]", vec![value, index], span)?,
                    }
                }
                _ => return self.not_in_dialect("this access", span),
            };
        }
        Ok(value)
    }

    fn bind_unary(&mut self, op: &UnaryOperator, x: &'a sql::Expr, span: Span, env: &Env<'_>) -> Fallible<Expr> {
        match op {
            UnaryOperator::Minus => {
                if let sql::Expr::Value(v) = x
                    && let Value::Number(text, long) = &v.value
                {
                    let text = text.to_string();
                    let text = if *long { format!("{text}L") } else { text };
                    return Ok(literal::number(&text, true, span)?.at(origin_at(span)));
                }
                let x = self.bind_expr(x, env)?;
                self.call("negative", vec![x], span)
            }
            UnaryOperator::Plus => {
                let x = self.bind_expr(x, env)?;
                self.call("positive", vec![x], span)
            }
            UnaryOperator::Not | UnaryOperator::BangNot => {
                let value = self.bind_expr(x, env)?;
                self.call("not", vec![value], span)
            }
            UnaryOperator::BitwiseNot => {
                let x = self.bind_expr(x, env)?;
                self.call("~", vec![x], span)
            }
            other => self.not_in_dialect(&format!("the operator `{other}`"), span),
        }
    }

    fn bind_binary(
        &mut self,
        left: &'a sql::Expr,
        op: &B,
        right: &'a sql::Expr,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        if matches!(op, B::And | B::Or) {
            let (a, b) = (self.bind_expr(left, env)?, self.bind_expr(right, env)?);
            let (at, bt) = (self.span(left), self.span(right));
            let what = if matches!(op, B::And) { "an operand of AND" } else { "an operand of OR" };
            let untyped = a.data_type == DataType::Null || b.data_type == DataType::Null;
            let condition = match ssql_stdlib::common_type(&a.data_type, &b.data_type).is_some() && !untyped {
                true => "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
                false => "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
            };
            // A text beside a BOOLEAN is read as one.
            let (a_type, b_type) = (a.data_type.clone(), b.data_type.clone());
            let read = |x: Expr, other: &DataType| match x.data_type {
                DataType::String if *other == DataType::Boolean => cast(x, &DataType::Boolean, CastMode::Ansi),
                _ => x,
            };
            let a = self.to_boolean(read(a, &b_type), what, condition, at)?;
            let b = self.to_boolean(read(b, &a_type), what, condition, bt)?;
            return Ok(if matches!(op, B::And) { and(a, b) } else { or(a, b) }.at(origin_at(span)));
        }
        let name = match op {
            B::Plus => "+",
            B::Minus => "-",
            B::Multiply => "*",
            B::Divide => "/",
            B::Modulo => "%",
            B::DuckIntegerDivide | B::MyIntegerDivide => "div",
            B::StringConcat => "||",
            B::Eq => "=",
            B::NotEq => "<>",
            B::Lt => "<",
            B::LtEq => "<=",
            B::Gt => ">",
            B::GtEq => ">=",
            B::Spaceship => "<=>",
            B::BitwiseAnd => "&",
            B::BitwiseOr => "|",
            B::BitwiseXor | B::PGBitwiseXor => "^",
            B::PGBitwiseShiftLeft => "shiftleft",
            B::PGBitwiseShiftRight => "shiftright",
            B::Custom(name) if name == ">>>" => "shiftrightunsigned",
            other => return self.not_in_dialect(&format!("the operator `{other}`"), span),
        };
        let (a, b) = (self.bind_expr(left, env)?, self.bind_expr(right, env)?);
        match name {
            "=" | "<=>" => self.equal(name, a, b, span),
            "<>" => Ok(not(self.equal("=", a, b, span)?)),
            _ => self.call(name, vec![a, b], span),
        }
    }

    fn bind_in_list(
        &mut self,
        x: &'a sql::Expr,
        list: &'a [sql::Expr],
        negated: bool,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let x = self.bind_expr(x, env)?;
        let items = list.iter().map(|item| self.bind_expr(item, env)).collect::<Fallible<Vec<_>>>()?;
        let common = self.common(std::iter::once(&x).chain(&items), "IN", span)?;
        let x = cast(x, &common, CastMode::Ansi);
        let mut any: Option<Expr> = None;
        for item in items {
            let equal = self.equal("=", x.clone(), cast(item, &common, CastMode::Ansi), span)?;
            any = Some(match any {
                Some(a) => or(a, equal),
                None => equal,
            });
        }
        let any = any.unwrap_or_else(|| boolean(false));
        Ok(if negated { not(any) } else { any }.at(origin_at(span)))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one syntax node")]
    fn bind_like(
        &mut self,
        name: &str,
        negated: bool,
        any: bool,
        x: &'a sql::Expr,
        pattern: &'a sql::Expr,
        escape: Option<&'a sql::Expr>,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let x = self.bind_expr(x, env)?;
        // sqlparser knows ANY; ALL (...) and SOME (...) come as calls of functions of that name.
        let quantified = quantified_patterns(pattern);
        let every = matches!(&quantified, Some((word, _)) if word.eq_ignore_ascii_case("all"));
        let patterns: Vec<&'a sql::Expr> = match (quantified, pattern) {
            (Some((_, patterns)), _) => patterns,
            (None, sql::Expr::Tuple(items)) if any => items.iter().collect(),
            (None, sql::Expr::Nested(inner)) if any => vec![inner],
            (None, other) => vec![other],
        };
        let escape = escape.map(|e| self.bind_expr(e, env)).transpose()?;
        let mut all: Option<Expr> = None;
        for pattern in patterns {
            let mut args = vec![x.clone(), self.bind_expr(pattern, env)?];
            args.extend(escape.clone());
            let mut matched = self.call(name, args, span)?;
            if negated {
                matched = not(matched);
            }
            all = Some(match all {
                Some(a) if every => and(a, matched),
                Some(a) => or(a, matched),
                None => matched,
            });
        }
        Ok(all.unwrap_or_else(|| boolean(negated)).at(origin_at(span)))
    }

    fn bind_cast(
        &mut self,
        kind: &CastKind,
        x: &'a sql::Expr,
        to: &sql::DataType,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let x = self.bind_expr(x, env)?;
        let to = super::data_type(to, span)?;
        let mode = match kind {
            CastKind::Cast | CastKind::DoubleColon => CastMode::Ansi,
            CastKind::TryCast | CastKind::SafeCast => CastMode::Try,
        };
        self.explicit_cast(x, &to, mode, span)
    }

    /// `CAST(x AS to)`, refused where no such cast exists.
    pub(super) fn explicit_cast(&self, x: Expr, to: &DataType, mode: CastMode, span: Span) -> Fallible<Expr> {
        if !ssql_stdlib::can_cast(&x.data_type, to) {
            let mut mismatch = ssql_stdlib::cast_mismatch(&x.data_type, to);
            // What a setting would allow of CAST, nothing allows of TRY_CAST.
            if mode == CastMode::Try && mismatch.condition == "DATATYPE_MISMATCH.CAST_WITH_CONF_SUGGESTION" {
                mismatch.condition = "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION";
            }
            return Err(resolve_error(mismatch, &[], span));
        }
        // A literal that is cast to its own type is no literal any more: `CAST(1 AS INT)` has an INT's precision.
        if matches!(x.kind, ExprKind::Literal(_)) && x.data_type == *to {
            return Ok(retyped(x, to).at(origin_at(span)));
        }
        Ok(cast(x, to, mode).at(origin_at(span)))
    }

    fn bind_case(
        &mut self,
        operand: Option<&'a sql::Expr>,
        whens: &'a [sql::CaseWhen],
        otherwise: Option<&'a sql::Expr>,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let operand = operand.map(|o| self.bind_expr(o, env)).transpose()?;
        let mut branches = vec![];
        for when in whens {
            let at = self.span(&when.condition);
            let condition = match &operand {
                Some(o) => {
                    let value = self.bind_expr(&when.condition, env)?;
                    self.equal("=", o.clone(), value, at)?
                }
                None => {
                    let bound = self.bind_predicate(&when.condition, env)?;
                    if matches!(&when.condition, sql::Expr::Value(v) if v.value == Value::Null) {
                        return fail(
                            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                            "a condition of CASE must be BOOLEAN, not VOID",
                            at,
                        );
                    }
                    bound
                }
            };
            branches.push((condition, self.bind_expr(&when.result, env)?));
        }
        let otherwise = otherwise.map(|o| self.bind_expr(o, env)).transpose()?;
        self.case(branches, otherwise, span)
    }

    /// CASE over values of a common type.
    pub(super) fn case(&self, branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>, span: Span) -> Fallible<Expr> {
        let values = branches.iter().map(|(_, v)| v).chain(&otherwise);
        let to = self.common(values, "CASE", span)?;
        let nullable = otherwise.as_ref().is_none_or(|o| o.nullable) || branches.iter().any(|(_, v)| v.nullable);
        let branches = branches.into_iter().map(|(c, v)| (c, cast(v, &to, CastMode::Ansi))).collect();
        let otherwise = otherwise.map(|o| Box::new(cast(o, &to, CastMode::Ansi)));
        Ok(Expr { kind: ExprKind::Case { branches, otherwise }, data_type: to, nullable, origin: origin_at(span) })
    }

    /// The type that all these values have in common.
    pub(super) fn common<'e>(
        &self,
        values: impl IntoIterator<Item = &'e Expr>,
        what: &str,
        span: Span,
    ) -> Fallible<DataType> {
        let types: Vec<&DataType> = values.into_iter().map(|v| &v.data_type).collect();
        if types.is_empty() {
            return Ok(DataType::Null);
        }
        ssql_stdlib::common_type_of(types.iter().copied()).map_or_else(
            || {
                let types: Vec<String> = types.iter().map(|t| t.to_string()).collect();
                fail(
                    "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
                    format!("the values of {what} have no common type: {}", types.join(", ")),
                    span,
                )
            },
            Ok,
        )
    }

    /// COALESCE over values of a common type.
    pub(super) fn coalesce(&self, values: Vec<Expr>, what: &str, span: Span) -> Fallible<Expr> {
        let to = self.common(&values, what, span)?;
        let nullable = values.iter().all(|v| v.nullable);
        let values = values.into_iter().map(|v| cast(v, &to, CastMode::Ansi)).collect();
        Ok(Expr { kind: ExprKind::Coalesce(values), data_type: to, nullable, origin: origin_at(span) })
    }

    fn bind_rounding(
        &mut self,
        name: &str,
        x: &'a sql::Expr,
        field: &'a sql::CeilFloorKind,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        let mut args = vec![self.bind_expr(x, env)?];
        match field {
            sql::CeilFloorKind::DateTimeField(sql::DateTimeField::NoDateTime) => {}
            sql::CeilFloorKind::DateTimeField(_) => return self.not_in_dialect("rounding to a unit of time", span),
            sql::CeilFloorKind::Scale(v) => args.push(self.bind_value(v, span)?),
        }
        self.call(name, args, span)
    }
}

/// TRUE where the predicate is true, else FALSE.
fn true_or_false(e: Expr) -> Expr {
    let origin = e.origin;
    let kind = ExprKind::Coalesce(vec![e, boolean(false)]);
    Expr { kind, data_type: DataType::Boolean, nullable: false, origin }
}

/// A struct of these values; a value without a name is `col1`, `col2`, ... by its place.
pub(super) fn struct_of(items: Vec<(Option<String>, Expr)>) -> Expr {
    let mut fields = vec![];
    let mut args = vec![];
    for (i, (name, value)) in items.into_iter().enumerate() {
        let name = name.unwrap_or_else(|| format!("col{}", i + 1));
        fields.push(Field::new(&name, value.data_type.clone(), value.nullable));
        args.push(string(&name));
        args.push(value);
    }
    Expr::call("named_struct", args, DataType::Struct(fields), false)
}

/// The name that a column reference gives to a struct field or a select item.
pub(super) fn implicit_name(e: &sql::Expr) -> Option<String> {
    match e {
        sql::Expr::Identifier(i) => Some(i.value.clone()),
        sql::Expr::CompoundIdentifier(parts) => parts.last().map(|p| p.value.clone()),
        sql::Expr::CompoundFieldAccess { access_chain, .. } => match access_chain.last() {
            Some(AccessExpr::Dot(sql::Expr::Identifier(i))) => Some(i.value.clone()),
            _ => None,
        },
        sql::Expr::Nested(inner) => implicit_name(inner),
        // TUMBLE_START(...) and kin are other dialects' names for the columns of the query's window.
        sql::Expr::Function(f) => super::window::column_of(&super::function::function_name(f)).map(str::to_string),
        _ => None,
    }
}

/// `ALL (p, ...)` or `SOME (p, ...)` as the patterns of a LIKE: the word and the patterns.
fn quantified_patterns(pattern: &sql::Expr) -> Option<(&str, Vec<&sql::Expr>)> {
    let sql::Expr::Function(f) = pattern else { return None };
    let [sql::ObjectNamePart::Identifier(word)] = f.name.0.as_slice() else { return None };
    let sql::FunctionArguments::List(list) = &f.args else { return None };
    if !["all", "some"].iter().any(|w| word.value.eq_ignore_ascii_case(w)) {
        return None;
    }
    let patterns = list.args.iter().map(|a| match a {
        sql::FunctionArg::Unnamed(sql::FunctionArgExpr::Expr(e)) => Some(e),
        _ => None,
    });
    Some((word.value.as_str(), patterns.collect::<Option<_>>()?))
}

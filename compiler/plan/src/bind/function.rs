//! Calls by name: conditional forms, SQL functions, higher-order functions, aggregates, the standard library.

use ssql_grammar::sql::{self, FunctionArg, FunctionArgExpr, FunctionArguments};
use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{CastMode, DataType, Expr, ExprKind, LambdaParam};
use ssql_stdlib::{ArgType, FunctionKind, NativeFunction};

use super::expr::{implicit_name, struct_of};
use super::operators::{arg_type, cast, int, is_null, resolve_error, resolved_call, string};
use super::{Binder, Clause, Env, LambdaFrame, Scope, origin_at};
use crate::catalog::{SqlFunction, suggest};
use crate::diag::{Fallible, fail, fail_help};

/// Functions whose first argument of three is a unit of time.
const UNIT_FIRST: [&str; 6] = ["timestampadd", "timestampdiff", "dateadd", "datediff", "date_add", "date_diff"];

/// Random functions, and the number of arguments that they have without a seed.
const UNSEEDED: [(&str, usize); 6] =
    [("rand", 0), ("randn", 0), ("uuid", 0), ("uniform", 2), ("shuffle", 1), ("randstr", 1)];

/// Casts by the name of their type: `int('1')`.
const CASTS: [&str; 12] = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "date",
    "timestamp",
    "binary",
    "string",
];
/// Functions that the planner lowers to kinds of their own, for did-you-mean.
const CONDITIONAL: [&str; 9] =
    ["if", "coalesce", "nvl", "ifnull", "nvl2", "nullif", "nullifzero", "zeroifnull", "window_time"];

/// How many parameters the lambda has that this higher-order function takes in that position; `None`: it takes none.
fn hidden_params(function: &str, position: usize) -> Option<usize> {
    match (function, position) {
        ("transform" | "filter" | "exists" | "forall", 1) => Some(1),
        ("aggregate" | "reduce", 2) | ("zip_with", 2) => Some(2),
        ("aggregate" | "reduce", 3) => Some(1),
        ("array_sort" | "map_filter" | "transform_keys" | "transform_values", 1) => Some(2),
        ("map_zip_with", 2) => Some(3),
        _ => None,
    }
}

impl<'a> Binder<'a> {
    pub(super) fn bind_function(&mut self, f: &'a sql::Function, span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let name = function_name(f);
        if let Some(window) = self.bind_window_call(&name, f, span, env)? {
            return Ok(window);
        }
        if f.over.is_some() {
            return self.bind_analytic(&name, f, span, env);
        }
        match name.as_str() {
            "grouping" | "grouping_id" => return self.bind_grouping(&name, f, span, env),
            "struct" => return self.bind_struct(f, span, env),
            _ => {}
        }
        if let Some(function) = self.catalog.function(&name) {
            return self.inline(function, f, span, env);
        }
        if let Some(native) = self.catalog.natives.get(&name) {
            return self.bind_native(native, f, span, env);
        }
        match ssql_stdlib::function_kind(&name) {
            Some(FunctionKind::Aggregate) => return self.bind_aggregate(&name, f, span, env),
            Some(FunctionKind::Window) => {
                return fail_help(
                    "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE",
                    format!("`{name}` is an analytic function and needs an OVER clause"),
                    span,
                    format!("Write {name}(...) OVER (PARTITION BY ... ORDER BY ...)."),
                );
            }
            Some(FunctionKind::Generator) => return self.misplaced_generator(&name, span, env),
            Some(FunctionKind::Scalar | FunctionKind::HigherOrder) => {}
            None if CONDITIONAL.contains(&name.as_str()) || CASTS.contains(&name.as_str()) => {}
            None => return Err(self.unknown_function(&name, span)),
        }
        if has_aggregate_syntax(f) {
            return fail(
                "INVALID_SQL_SYNTAX",
                format!("DISTINCT, FILTER, WITHIN GROUP and IGNORE NULLS belong to aggregates, and `{name}` is none"),
                span,
            );
        }
        let asts = self.argument_asts(&name, f, span)?;
        let higher_order = ssql_stdlib::function_kind(&name) == Some(FunctionKind::HigherOrder);
        if higher_order || asts.iter().any(|a| matches!(a, sql::Expr::Lambda(_))) {
            return self.bind_higher_order(&name, &asts, span, env);
        }
        let mut args = vec![];
        for (i, ast) in asts.iter().enumerate() {
            args.push(match ast {
                // A unit of time stands as a bare word: timestampadd(DAY, 1, ts).
                sql::Expr::Identifier(unit) if i == 0 && asts.len() == 3 && UNIT_FIRST.contains(&name.as_str()) => {
                    string(&unit.value.to_ascii_lowercase()).at(origin_at(self.ident_span(unit)))
                }
                other => self.bind_expr(other, env)?,
            });
        }
        self.conditional_or_call(&name, args, span)
    }

    fn conditional_or_call(&mut self, name: &str, mut args: Vec<Expr>, span: Span) -> Fallible<Expr> {
        let count = |args: &[Expr], wanted: &[usize]| -> Fallible<()> {
            if wanted.contains(&args.len()) {
                return Ok(());
            }
            let wanted = wanted.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
            fail(
                "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                format!("`{name}` takes {wanted} arguments, not {}", args.len()),
                span,
            )
        };
        match name {
            _ if CASTS.contains(&name) => {
                count(&args, &[1])?;
                let to = ssql_stdlib::parse_data_type(name).ok_or_else(|| self.unknown_function(name, span))?;
                self.explicit_cast(pop(&mut args), &to, CastMode::Ansi, span)
            }
            "if" => {
                count(&args, &[3])?;
                let (no, yes, condition) = (pop(&mut args), pop(&mut args), pop(&mut args));
                let condition =
                    self.to_boolean(condition, "the condition", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", span)?;
                self.case(vec![(condition, yes)], Some(no), span)
            }
            "coalesce" => {
                if args.is_empty() {
                    count(&args, &[1])?;
                }
                self.coalesce(args, name, span)
            }
            "nvl" | "ifnull" => {
                count(&args, &[2])?;
                self.coalesce(args, name, span)
            }
            "nvl2" => {
                count(&args, &[3])?;
                let (no, yes, x) = (pop(&mut args), pop(&mut args), pop(&mut args));
                self.case(vec![(is_null(x, true), yes)], Some(no), span)
            }
            "nullif" => {
                count(&args, &[2])?;
                let (b, a) = (pop(&mut args), pop(&mut args));
                let equal = self.equal("=", a.clone(), b, span)?;
                let null = Expr::literal(ssql_ir::Literal::Null, a.data_type.clone());
                self.case(vec![(equal, null)], Some(a), span)
            }
            "nullifzero" => {
                count(&args, &[1])?;
                let x = pop(&mut args);
                let is_zero = self.equal("=", x.clone(), int(0), span)?;
                let null = Expr::literal(ssql_ir::Literal::Null, x.data_type.clone());
                self.case(vec![(is_zero, null)], Some(x), span)
            }
            "zeroifnull" => {
                count(&args, &[1])?;
                args.push(int(0));
                self.coalesce(args, name, span)
            }
            // With two arguments it decodes bytes.
            "decode" if args.len() > 2 => self.decode(args, span),
            "window_time" => {
                count(&args, &[1])?;
                match self.window_ref(&args[0]) {
                    Some(w) => Ok(self.window_time(w).at(origin_at(span))),
                    None => fail_help(
                        "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                        "window_time takes a time window",
                        span,
                        "Give it the column `window` of a query that groups by TUMBLE or HOP.",
                    ),
                }
            }
            _ => {
                let call = self.call(name, args, span)?;
                Ok(self.with_seed(call))
            }
        }
    }

    /// `decode(x, value, result, ...[, default])`: CASE with comparisons in which NULL equals NULL.
    fn decode(&self, mut args: Vec<Expr>, span: Span) -> Fallible<Expr> {
        let default = match args.len() % 2 {
            0 => args.pop(),
            _ => None,
        };
        let default = default.unwrap_or_else(|| Expr::literal(ssql_ir::Literal::Null, DataType::String));
        let mut args = args.into_iter();
        let mut branches = vec![];
        if let Some(x) = args.next() {
            while let (Some(value), Some(result)) = (args.next(), args.next()) {
                branches.push((self.equal("<=>", x.clone(), value, span)?, result));
            }
        }
        self.case(branches, Some(default), span)
    }

    /// Gives a random function without a seed one of its own: two calls in a statement are two numbers.
    fn with_seed(&mut self, mut call: Expr) -> Expr {
        if let ExprKind::Call { function, args } = &mut call.kind
            && UNSEEDED.contains(&(&**function, args.len()))
        {
            let number = Expr::literal(ssql_ir::Literal::Int(self.next_seed), DataType::Int64);
            self.next_seed += 1;
            args.push(Expr::call("random_seed", vec![number], DataType::Int64, false));
        }
        call
    }

    /// The arguments as expressions; `*` and named arguments are refused.
    pub(super) fn argument_asts(&self, name: &str, f: &'a sql::Function, span: Span) -> Fallible<Vec<&'a sql::Expr>> {
        let mut out = vec![];
        for arg in arguments(f) {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => out.push(e),
                FunctionArg::Unnamed(_) => {
                    return fail("INVALID_USAGE_OF_STAR_OR_REGEX", format!("`{name}` does not take `*`"), span);
                }
                FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                    return fail(
                        "NAMED_PARAMETERS_NOT_SUPPORTED",
                        format!("`{name}` does not take arguments by name"),
                        span,
                    );
                }
            }
        }
        Ok(out)
    }

    fn bind_struct(&mut self, f: &'a sql::Function, span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let mut items = vec![];
        for e in self.argument_asts("struct", f, span)? {
            items.push(match e {
                sql::Expr::Named { expr, name } => (Some(name.value.clone()), self.bind_expr(expr, env)?),
                other => (implicit_name(other), self.bind_expr(other, env)?),
            });
        }
        Ok(struct_of(items).at(origin_at(span)))
    }

    fn bind_higher_order(&mut self, name: &str, asts: &[&'a sql::Expr], span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let mut args: Vec<Option<Expr>> = vec![];
        for ast in asts {
            args.push(match ast {
                sql::Expr::Lambda(_) => None,
                other => Some(self.bind_expr(other, env)?),
            });
        }
        let mut types: Vec<Option<DataType>> = args.iter().map(|a| a.as_ref().map(|a| a.data_type.clone())).collect();
        for (i, ast) in asts.iter().enumerate() {
            let names: Vec<&str> = match ast {
                sql::Expr::Lambda(lambda) => match &lambda.params {
                    sql::OneOrManyWithParens::One(p) => vec![p.name.value.as_str()],
                    sql::OneOrManyWithParens::Many(ps) => ps.iter().map(|p| p.name.value.as_str()).collect(),
                },
                // What stands where a lambda belongs is the body of one that looks at none of its parameters, which
                // have no names then.
                _ => match hidden_params(name, i) {
                    Some(n) => vec![""; n],
                    None => continue,
                },
            };
            types[i] = None;
            let params = match ssql_stdlib::lambda_param_types(name, &types, i, names.len()) {
                Ok(params) => params,
                Err(e) => return Err(resolve_error(e, &[], span)),
            };
            let params: Vec<LambdaParam> = names
                .iter()
                .zip(params)
                .map(|(name, (data_type, nullable))| LambdaParam {
                    id: self.new_lambda_id(),
                    name: (*name).to_owned(),
                    data_type,
                    nullable,
                })
                .collect();
            let body = match (ast, args[i].take()) {
                (_, Some(body)) => body,
                (sql::Expr::Lambda(lambda), None) => {
                    let frame = LambdaFrame { params: params.clone(), outer: env.lambda };
                    let inner = Env { lambda: Some(&frame), aggs: None, analytics: None, ..*env };
                    self.bind_expr(&lambda.body, &inner)?
                }
                (other, None) => self.bind_expr(other, env)?,
            };
            types[i] = Some(body.data_type.clone());
            let (data_type, nullable) = (body.data_type.clone(), body.nullable);
            let kind = ExprKind::Lambda { params, body: Box::new(body) };
            args[i] = Some(Expr { kind, data_type, nullable, origin: origin_at(span) });
        }
        let args: Vec<Expr> = args.into_iter().flatten().collect();
        let types: Vec<ArgType> = args.iter().map(arg_type).collect();
        match ssql_stdlib::resolve_scalar(name, &types) {
            Ok(resolved) => Ok(resolved_call(resolved, args, span)),
            Err(e) => Err(resolve_error(e, &args, span)),
        }
    }

    /// A call of a function that the embedding program has registered.
    fn bind_native(
        &mut self,
        native: &'a NativeFunction,
        f: &'a sql::Function,
        span: Span,
        env: &Env<'_>,
    ) -> Fallible<Expr> {
        if has_aggregate_syntax(f) {
            let message = format!("`{}` is no aggregate: it takes no DISTINCT, FILTER or IGNORE NULLS", native.name);
            return fail("INVALID_SQL_SYNTAX", message, span);
        }
        let asts = self.argument_asts(&native.name, f, span)?;
        if asts.len() != native.params.len() {
            let message = format!("`{}` takes {} arguments, not {}", native.name, native.params.len(), asts.len());
            return fail("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", message, span);
        }
        let mut args = vec![];
        for (ast, to) in asts.into_iter().zip(&native.params) {
            let arg = self.bind_expr(ast, env)?;
            if !same_or_castable(&arg.data_type, to) {
                let message = format!("`{}` takes {to} here, not {}", native.name, arg.data_type);
                return fail("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", message, self.span(ast));
            }
            args.push(cast(arg, to, CastMode::Ansi));
        }
        let name = native.name.to_lowercase();
        Ok(Expr::call(&name, args, native.returns.clone(), true).at(origin_at(span)))
    }

    /// A call of a SQL function: its body over the arguments.
    fn inline(&mut self, function: &'a SqlFunction, f: &'a sql::Function, span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let mut given: Vec<Option<Expr>> = vec![None; function.params.len()];
        for (i, arg) in arguments(f).iter().enumerate() {
            let (slot, e) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => (Some(i), e),
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(e), .. } => {
                    let slot = function.params.iter().position(|(p, ..)| p.eq_ignore_ascii_case(&name.value));
                    if slot.is_none() {
                        return fail(
                            "UNRECOGNIZED_PARAMETER_NAME",
                            format!("`{}` has no parameter `{}`", function.name, name.value),
                            span,
                        );
                    }
                    (slot, e)
                }
                _ => return self.not_in_dialect("this argument", span),
            };
            match slot.and_then(|s| given.get_mut(s)) {
                Some(place) => *place = Some(self.bind_expr(e, env)?),
                None => return self.wrong_count(function, arguments(f).len(), span),
            }
        }
        if self.depth >= super::MAX_DEPTH {
            return fail("RECURSIVE_FUNCTION", format!("`{}` calls itself", function.name), span);
        }
        self.depth += 1;
        let result = self.inline_body(function, given, f, span);
        self.depth -= 1;
        result
    }

    fn inline_body(
        &mut self,
        function: &'a SqlFunction,
        given: Vec<Option<Expr>>,
        f: &'a sql::Function,
        span: Span,
    ) -> Fallible<Expr> {
        let what = format!("the function `{}`", function.name);
        let mut params = vec![];
        for ((name, data_type, default), value) in function.params.iter().zip(given) {
            let value = match (value, default) {
                (Some(value), _) => value,
                (None, Some(default)) => {
                    self.inside(span, &default.clauses, &what, |b| b.bind_constant(&default.sql))?
                }
                (None, None) => return self.wrong_count(function, arguments(f).len(), span),
            };
            if !same_or_castable(&value.data_type, data_type) {
                return fail(
                    "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                    format!("`{}` takes {data_type} as `{name}`, not {}", function.name, value.data_type),
                    span,
                );
            }
            params.push((name.clone(), cast(value, data_type, CastMode::Ansi)));
        }
        let scope = Scope::default();
        let body = self.inside(span, &function.body.clauses, &what, |b| {
            let env = Env { params: &params, ..Env::new(&scope, Clause::Other) };
            b.bind_expr(&function.body.sql, &env)
        })?;
        match &function.returns {
            Some(t) => self.explicit_cast(body, t, CastMode::Ansi, span),
            None => Ok(body),
        }
    }

    fn wrong_count<T>(&self, function: &SqlFunction, n: usize, span: Span) -> Fallible<T> {
        let message = format!("`{}` takes {} arguments, not {n}", function.name, function.params.len());
        fail("WRONG_NUM_ARGS.WITHOUT_SUGGESTION", message, span)
    }

    pub(super) fn unknown_function(&self, name: &str, span: Span) -> Box<Diagnostic> {
        let windows = ["tumble", "hop", "session", "window", "session_window"];
        let mut known: Vec<&str> =
            ssql_stdlib::function_names().chain(CONDITIONAL).chain(CASTS).chain(windows).collect();
        known.extend(self.catalog.functions().map(|f| f.name.as_str()));
        known.extend(self.catalog.natives.names());
        if let Some((condition, why)) = refused_function(name) {
            return Box::new(Diagnostic::error(condition, format!("`{name}` {why}")).at(span));
        }
        let d = Diagnostic::error("UNRESOLVED_ROUTINE", format!("there is no function `{name}`")).at(span);
        Box::new(match (foreign_function(name), suggest(name, known)) {
            (Some(help), _) => d.with_help(help),
            (None, Some(near)) => d.with_help(format!("Did you mean `{near}`?")),
            (None, None) => d.with_help("SHOW FUNCTIONS lists them; CREATE FUNCTION makes a new one."),
        })
    }

    fn misplaced_generator(&self, name: &str, span: Span, env: &Env<'_>) -> Fallible<Expr> {
        let condition = match env.clause {
            Clause::Select => "UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS",
            _ => "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
        };
        fail_help(
            condition,
            format!("`{name}` makes rows and can only be an item of SELECT or stand in LATERAL VIEW"),
            span,
            format!("Write FROM ... LATERAL VIEW {name}(...) t AS c and use `c`."),
        )
    }
}

fn pop(args: &mut Vec<Expr>) -> Expr {
    args.pop().expect("the number of arguments has been checked")
}

fn same_or_castable(from: &DataType, to: &DataType) -> bool {
    super::same_type(from, to) || ssql_stdlib::can_store_assign(from, to)
}

/// The lower-case name of a call, without the `system.builtin` that Spark's own functions may be called by.
pub(super) fn function_name(f: &sql::Function) -> String {
    let name = qualified_name(f);
    let builtin = name.strip_prefix("system.").unwrap_or(&name).strip_prefix("builtin.");
    builtin.map(str::to_owned).unwrap_or(name)
}

fn qualified_name(f: &sql::Function) -> String {
    f.name
        .0
        .iter()
        .filter_map(|p| match p {
            sql::ObjectNamePart::Identifier(i) => Some(i.value.to_ascii_lowercase()),
            sql::ObjectNamePart::Function(_) => None,
        })
        .collect::<Vec<_>>()
        .join(".")
}

/// The arguments between the parentheses.
pub(super) fn arguments(f: &sql::Function) -> &[FunctionArg] {
    match &f.args {
        FunctionArguments::List(list) => &list.args,
        FunctionArguments::None | FunctionArguments::Subquery(_) => &[],
    }
}

fn has_aggregate_syntax(f: &sql::Function) -> bool {
    let distinct = matches!(&f.args, FunctionArguments::List(l) if l.duplicate_treatment.is_some());
    distinct || f.filter.is_some() || !f.within_group.is_empty() || f.null_treatment.is_some()
}

/// Spark's functions that are refused by name: the condition, and why.
fn refused_function(name: &str) -> Option<(&'static str, &'static str)> {
    let variant = ("UNSUPPORTED_DATATYPE", "needs the type VARIANT, which is not part of the dialect");
    let time = ("UNSUPPORTED_DATATYPE", "needs the type TIME, which is not part of the dialect");
    let nanos = ("UNSUPPORTED_DATATYPE", "needs timestamps of nanoseconds, which are not part of the dialect");
    let kafka = ("UNSUPPORTED_FEATURE.KAFKA_FORMAT", "is not supported: Avro and Protobuf are not read or written");
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "parse_json" | "try_parse_json" | "to_variant_object" | "is_valid_variant" => variant,
        n if n.contains("variant") => variant,
        "current_time" | "localtime" | "make_time" | "to_time" | "try_to_time" | "time_diff" | "time_trunc"
        | "time" => time,
        n if n.starts_with("time_from_") || n.starts_with("time_to_") => time,
        "timestamp_nanos" | "unix_nanos" => nanos,
        "from_avro" | "to_avro" | "schema_of_avro" | "from_protobuf" | "to_protobuf" => kafka,
        _ => return None,
    })
}

/// What a function of Flink SQL is called here.
fn foreign_function(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "proctime" => "Flink's PROCTIME() is current_timestamp(): the processing time of the micro-batch.",
        "rowtime" => "Event time is the column that WATERMARK names.",
        "current_watermark" => "SHOW QUERY PROGRESS shows a query's watermark.",
        "hop_start" | "hop_end" | "session_start" | "session_end" | "tumble_rowtime" | "hop_rowtime" => {
            "Group by TUMBLE, HOP or SESSION and select window_start, window_end or window_time."
        }
        _ => return None,
    })
}

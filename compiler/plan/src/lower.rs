//! Lowering: the logical plan's columns become positions, its operators the IR's.
//!
//! The IR's operators name columns only, so a Map is put in front where an expression is needed. One DropLate stands
//! right before each operator whose state the watermark bounds, and nowhere else (the sides of a stream join carry
//! theirs themselves).

use ssql_ir::{
    AggArg, AggCall, ChangeKind, CloseRule, EmitMode, Expr, ExprKind, Field, JoinKind, JoinSide, Node as IrNode,
    NodeId, Op, Pipeline, Schema, SortKey, Symbol, WindowCall,
};

use crate::logical::{AggExpr, AnalyticExpr, ColumnId, Columns, DedupKind, EventTime, Node, OrderKey, Plan, Query};
use crate::stream_join::{self, Expiry};

/// A query as a pipeline. `sink` adds the Sink node.
pub(crate) fn lower(query: &Query, name: &str, mode: EmitMode, sink: Option<Symbol>) -> Pipeline {
    let keep_late = query.keep_late;
    let mut lowerer = Lowerer { columns: &query.columns, nodes: vec![], mode, root: &query.plan, keep_late };
    let output: Vec<ColumnId> = query.output.iter().map(|(id, _)| *id).collect();
    let mut top = lowerer.plan(&query.plan);
    top = lowerer.select(top, &output);
    lowerer.rename(&top, query.output.iter().map(|(_, n)| n.clone()).collect());
    if let Some(relation) = sink {
        lowerer.push(Op::Sink { relation }, &[&top], top.columns.clone(), None);
    }
    let mut pipeline = Pipeline { name: name.to_string(), nodes: lowerer.nodes, mode, subqueries: subqueries(query) };
    crate::passes::fuse::fuse_maps(&mut pipeline);
    pipeline
}

fn subqueries(query: &Query) -> Vec<Pipeline> {
    query
        .subqueries
        .iter()
        .enumerate()
        .map(|(i, (plan, id))| {
            let mode = EmitMode::Complete;
            let mut lowerer = Lowerer { columns: &query.columns, nodes: vec![], mode, root: plan, keep_late: false };
            let top = lowerer.plan(plan);
            lowerer.select(top, &[*id]);
            Pipeline { name: format!("subquery{i}"), nodes: lowerer.nodes, mode, subqueries: vec![] }
        })
        .collect()
}

/// The column of a computed value that no one above names.
const UNNAMED: ColumnId = ColumnId::MAX;

struct Lowerer<'q> {
    columns: &'q Columns,
    nodes: Vec<IrNode>,
    mode: EmitMode,
    root: &'q Plan,
    /// Rows are kept whole up to the late filters.
    keep_late: bool,
}

/// A lowered operator: its node, and which column stands at which position.
#[derive(Debug, Clone)]
struct Lowered {
    node: NodeId,
    columns: Vec<ColumnId>,
    /// A stream flows here.
    streaming: bool,
    /// A watermark lies below.
    timed: bool,
}

impl Lowered {
    fn position(&self, id: ColumnId) -> u32 {
        self.columns.iter().position(|c| *c == id).expect("the binder resolved every column to one of the input") as u32
    }
}

impl<'q> Lowerer<'q> {
    fn schema(&self, l: &Lowered) -> &Schema {
        &self.nodes[l.node.0 as usize].schema
    }

    /// Adds an operator whose output has these columns. `fields` gives their types where they are not the inputs'.
    fn push(&mut self, op: Op, inputs: &[&Lowered], columns: Vec<ColumnId>, fields: Option<Vec<Field>>) -> Lowered {
        let fields = fields
            .unwrap_or_else(|| inputs.iter().flat_map(|i| self.schema(i).fields.clone()).take(columns.len()).collect());
        let streaming = inputs.iter().any(|i| i.streaming) || matches!(op, Op::Source { streaming: true, .. });
        let timed = inputs.iter().any(|i| i.timed) || matches!(op, Op::Watermark { .. });
        let event_time = if timed {
            columns
                .iter()
                .enumerate()
                .filter(|(_, id)| **id != UNNAMED && self.columns.get(**id).event_time.is_some())
                .map(|(i, _)| i as u32)
                .collect()
        } else {
            vec![]
        };
        let below = inputs.iter().map(|i| self.nodes[i.node.0 as usize].change).next().unwrap_or(ChangeKind::Append);
        let change = match &op {
            Op::Aggregate { .. } | Op::HopAggregate { .. } | Op::SessionAggregate { .. } if streaming => {
                match self.mode {
                    EmitMode::Append => ChangeKind::Append,
                    EmitMode::Update => ChangeKind::Upsert,
                    EmitMode::Complete => ChangeKind::Replace,
                }
            }
            _ => below,
        };
        self.nodes.push(IrNode {
            op,
            inputs: inputs.iter().map(|i| i.node).collect(),
            schema: Schema::new(fields),
            event_time,
            change,
        });
        Lowered { node: NodeId((self.nodes.len() - 1) as u32), columns, streaming, timed }
    }

    fn field(&self, id: ColumnId) -> Field {
        let info = self.columns.get(id);
        Field::new(&info.name, info.data_type.clone(), info.nullable)
    }

    /// An expression over positions, with the nullability that the input has there.
    fn over(&self, e: &Expr, input: &Lowered) -> Expr {
        self.over_both(e, &input.columns, &self.schema(input).fields.clone())
    }

    fn over_both(&self, e: &Expr, columns: &[ColumnId], fields: &[Field]) -> Expr {
        let mut e = e.clone();
        e.walk_mut(&mut |x| {
            if let ExprKind::Column(id) = &mut x.kind {
                let at =
                    columns.iter().position(|c| c == id).expect("the binder resolved every column to one of the input");
                *id = at as u32;
                if let Some(field) = fields.get(at) {
                    x.nullable |= field.nullable;
                }
            }
        });
        e
    }

    /// Filter and projection.
    fn map(&mut self, input: Lowered, predicate: Option<&Expr>, project: Vec<(ColumnId, Expr)>) -> Lowered {
        let predicate = predicate.map(|p| self.over(p, &input));
        let exprs: Vec<Expr> = project.iter().map(|(_, e)| self.over(e, &input)).collect();
        let identity = exprs.len() == input.columns.len()
            && exprs.iter().enumerate().all(|(i, e)| e.kind == ExprKind::Column(i as u32))
            && project.iter().zip(&input.columns).all(|((id, _), c)| id == c);
        if predicate.is_none() && identity {
            return input;
        }
        let columns: Vec<ColumnId> = project.iter().map(|(id, _)| *id).collect();
        let fields = project
            .iter()
            .zip(&exprs)
            .map(|((id, _), e)| {
                let name = match (*id, &e.kind) {
                    (UNNAMED, ExprKind::Column(c)) => self.schema(&input).fields[*c as usize].name.clone(),
                    (UNNAMED, _) if self.keep_late => "$expr".to_string(),
                    (UNNAMED, _) => "expr".to_string(),
                    (id, _) => self.columns.get(id).name.clone(),
                };
                Field::new(name, e.data_type.clone(), e.nullable)
            })
            .collect();
        self.push(Op::Map { predicate, project: exprs }, &[&input], columns, Some(fields))
    }

    /// The input with just these columns, in this order.
    fn select(&mut self, input: Lowered, ids: &[ColumnId]) -> Lowered {
        let project = ids.iter().map(|id| (*id, self.columns.expr(*id))).collect();
        self.map(input, None, project)
    }

    fn rename(&mut self, l: &Lowered, names: Vec<String>) {
        for (field, name) in self.nodes[l.node.0 as usize].schema.fields.iter_mut().zip(names) {
            field.name = name;
        }
    }

    /// The input reduced to these values, each once; `(column it is known by, value)`. Gives their positions.
    fn values(&mut self, input: Lowered, wanted: Vec<(ColumnId, Expr)>) -> (Lowered, Vec<u32>) {
        if wanted.iter().all(|(_, e)| matches!(e.kind, ExprKind::Column(_))) {
            let positions = wanted
                .iter()
                .map(|(_, e)| match e.kind {
                    ExprKind::Column(id) => input.position(id),
                    _ => 0,
                })
                .collect();
            return (input, positions);
        }
        let mut project: Vec<(ColumnId, Expr)> = vec![];
        let mut positions = vec![];
        for (id, e) in wanted {
            let at = match project.iter().position(|(_, p)| *p == e) {
                Some(at) => at,
                None => {
                    let id = match e.kind {
                        ExprKind::Column(c) => c,
                        _ => id,
                    };
                    project.push((id, e));
                    project.len() - 1
                }
            };
            positions.push(at as u32);
        }
        if self.keep_late && input.streaming {
            for (id, e) in self.pass_through(&input) {
                if !project.iter().any(|(known, _)| *known == id) {
                    project.push((id, e));
                }
            }
        }
        (self.map(input, None, project), positions)
    }

    /// The input with further columns for those of these values that are not columns already.
    fn with_values(&mut self, input: Lowered, wanted: Vec<Expr>) -> (Lowered, Vec<u32>) {
        let mut project: Vec<(ColumnId, Expr)> = vec![];
        for (i, id) in input.columns.iter().enumerate() {
            let field = &self.schema(&input).fields[i];
            let e = match *id {
                UNNAMED => continue,
                id => Expr::column(id, field.data_type.clone(), field.nullable),
            };
            project.push((*id, e));
        }
        let mut positions = vec![];
        for e in wanted {
            let at = match project.iter().position(|(_, p)| p.kind == e.kind) {
                Some(at) => at,
                None => {
                    project.push((UNNAMED, e));
                    project.len() - 1
                }
            };
            positions.push(at as u32);
        }
        (self.map(input, None, project), positions)
    }

    fn plan(&mut self, plan: &Plan) -> Lowered {
        match &plan.node {
            Node::Source { relation, streaming, columns } => {
                let ids: Vec<ColumnId> = columns.iter().map(|(id, _)| *id).collect();
                let fields = ids.iter().map(|id| self.field(*id)).collect();
                let op = Op::Source {
                    relation: relation.clone(),
                    streaming: *streaming,
                    columns: columns.iter().map(|(_, at)| *at).collect(),
                };
                self.push(op, &[], ids, Some(fields))
            }
            Node::Values { columns, rows } => {
                let fields = columns.iter().map(|id| self.field(*id)).collect();
                self.push(Op::Values { rows: rows.clone() }, &[], columns.clone(), Some(fields))
            }
            Node::Filter { predicate } => {
                let input = self.plan(&plan.inputs[0]);
                let project = self.pass_through(&input);
                self.map(input, Some(predicate), project)
            }
            Node::Project { columns } => {
                let below = &plan.inputs[0];
                let (input, predicate) = match &below.node {
                    Node::Filter { predicate } => (self.plan(&below.inputs[0]), Some(predicate)),
                    _ => (self.plan(below), None),
                };
                self.map(input, predicate, columns.clone())
            }
            Node::Watermark { column, spec } => {
                let input = self.plan(&plan.inputs[0]);
                let op = Op::Watermark {
                    column: input.position(*column),
                    delay: spec.delay,
                    idle_after: spec.idle_after,
                    max_skew: spec.max_skew,
                };
                let columns = input.columns.clone();
                self.push(op, &[&input], columns, None)
            }
            Node::AssignWindows { time, start, size, slide, offset } => {
                let input = self.plan(&plan.inputs[0]);
                let op = Op::AssignWindows { time: input.position(*time), size: *size, slide: *slide, offset: *offset };
                let mut fields = self.schema(&input).fields.clone();
                fields.push(self.field(*start));
                let mut columns = input.columns.clone();
                columns.push(*start);
                self.push(op, &[&input], columns, Some(fields))
            }
            Node::Aggregate { keys, aggs } => self.aggregate(plan, keys, aggs),
            Node::HopAggregate { .. } => self.hop(plan),
            Node::Session { start, end, keys, aggs } => self.session(plan, *start, *end, keys, aggs),
            Node::Dedup { keys, kind } => self.dedup(plan, keys, *kind),
            Node::Join { kind, on, flag } => self.join(plan, *kind, on.as_ref(), *flag),
            Node::Union { columns, sources } => {
                let mut inputs = vec![];
                for (input, ids) in plan.inputs.iter().zip(sources) {
                    let lowered = self.plan(input);
                    inputs.push(self.select(lowered, ids));
                }
                let fields = columns.iter().map(|id| self.field(*id)).collect();
                let inputs: Vec<&Lowered> = inputs.iter().collect();
                self.push(Op::Union, &inputs, columns.clone(), Some(fields))
            }
            Node::Sort { keys } => {
                let input = self.plan(&plan.inputs[0]);
                let (input, positions) = self.with_values(input, keys.iter().map(|k| k.expr.clone()).collect());
                let op = Op::Sort { keys: sort_keys(keys, &positions) };
                let columns = input.columns.clone();
                self.push(op, &[&input], columns, None)
            }
            Node::Limit { limit, offset } => {
                let input = self.plan(&plan.inputs[0]);
                let columns = input.columns.clone();
                self.push(Op::Limit { limit: *limit, offset: *offset }, &[&input], columns, None)
            }
            Node::Expand { columns, projections } => {
                let input = self.plan(&plan.inputs[0]);
                let projections: Vec<Vec<Expr>> =
                    projections.iter().map(|p| p.iter().map(|e| self.over(e, &input)).collect()).collect();
                let fields = columns
                    .iter()
                    .enumerate()
                    .map(|(i, id)| {
                        let mut field = self.field(*id);
                        field.nullable = projections.iter().any(|p| p[i].nullable);
                        field
                    })
                    .collect();
                self.push(Op::Expand { projections }, &[&input], columns.clone(), Some(fields))
            }
            Node::Generate { generator, args, outputs, outer } => {
                let input = self.plan(&plan.inputs[0]);
                let args = args.iter().map(|e| self.over(e, &input)).collect();
                let mut fields = self.schema(&input).fields.clone();
                fields.extend(outputs.iter().map(|id| self.field(*id)));
                let mut columns = input.columns.clone();
                columns.extend(outputs);
                let op = Op::Generate { generator: generator.clone(), args, outer: *outer };
                self.push(op, &[&input], columns, Some(fields))
            }
            Node::WindowFunction { partition, order, calls } => self.window_function(plan, partition, order, calls),
        }
    }

    fn pass_through(&self, input: &Lowered) -> Vec<(ColumnId, Expr)> {
        let fields = &self.schema(input).fields;
        input
            .columns
            .iter()
            .zip(fields)
            .filter(|(id, _)| **id != UNNAMED)
            .map(|(id, f)| (*id, Expr::column(*id, f.data_type.clone(), f.nullable)))
            .collect()
    }

    /// What one batch emits: the query's mode where a stream is grouped, all where a table is.
    fn emit(&self, input: &Lowered) -> EmitMode {
        if input.streaming { self.mode } else { EmitMode::Complete }
    }

    /// The event time among columns at these positions.
    fn timed_key(&self, input: &Lowered, positions: &[u32]) -> Option<CloseRule> {
        if !input.timed {
            return None;
        }
        positions.iter().find_map(|at| {
            let id = input.columns[*at as usize];
            let time: EventTime = if id == UNNAMED { None } else { self.columns.get(id).event_time }?;
            Some(CloseRule { column: *at, add_micros: time.add_micros })
        })
    }

    fn drop_late(&mut self, input: Lowered, rule: Option<CloseRule>) -> Lowered {
        match rule {
            Some(rule) => {
                let columns = input.columns.clone();
                self.push(Op::DropLate { rule }, &[&input], columns, None)
            }
            None => input,
        }
    }

    /// The values that aggregates read, after the keys'; and the calls over their positions.
    fn agg_values(&self, aggs: &[(ColumnId, AggExpr)], wanted: &mut Vec<(ColumnId, Expr)>) {
        for (_, call) in aggs {
            for (i, arg) in call.args.iter().enumerate() {
                if !is_literal_arg(call, arg, i) {
                    wanted.push((UNNAMED, arg.clone()));
                }
            }
            wanted.extend(call.filter.iter().map(|f| (UNNAMED, f.clone())));
            wanted.extend(call.order.iter().map(|k| (UNNAMED, k.expr.clone())));
        }
    }

    fn agg_call(&self, call: &AggExpr, positions: &mut impl Iterator<Item = u32>) -> AggCall {
        let mut next = || positions.next().expect("a position was asked for per value");
        let args = call
            .args
            .iter()
            .enumerate()
            .map(|(i, arg)| match &arg.kind {
                ExprKind::Literal(l) if is_literal_arg(call, arg, i) => {
                    AggArg::Literal(l.clone(), arg.data_type.clone())
                }
                _ => AggArg::Column(next()),
            })
            .collect();
        let filter = call.filter.as_ref().map(|_| next());
        let order = call
            .order
            .iter()
            .map(|k| SortKey { column: next(), descending: k.descending, nulls_first: k.nulls_first })
            .collect();
        AggCall {
            function: call.function.clone(),
            args,
            arg_types: call.args.iter().map(|a| a.data_type.clone()).collect(),
            filter,
            distinct: call.distinct,
            ignore_nulls: call.ignore_nulls,
            order,
            data_type: call.data_type.clone(),
            nullable: call.nullable,
        }
    }

    fn aggregate(&mut self, plan: &Plan, keys: &[(ColumnId, Expr)], aggs: &[(ColumnId, AggExpr)]) -> Lowered {
        let input = self.plan(&plan.inputs[0]);
        let mut wanted: Vec<(ColumnId, Expr)> = keys.to_vec();
        self.agg_values(aggs, &mut wanted);
        let (mut input, positions) = self.values(input, wanted);
        let emit = self.emit(&input);
        let key_positions = positions[..keys.len()].to_vec();
        let close = self.timed_key(&input, &key_positions).filter(|_| input.streaming && emit != EmitMode::Complete);
        input = self.drop_late(input, close);
        let mut rest = positions[keys.len()..].iter().copied();
        let calls: Vec<AggCall> = aggs.iter().map(|(_, a)| self.agg_call(a, &mut rest)).collect();
        let columns: Vec<ColumnId> = keys.iter().map(|(id, _)| *id).chain(aggs.iter().map(|(id, _)| *id)).collect();
        let fields = self.group_fields(&input, keys, &key_positions, aggs);
        self.push(Op::Aggregate { keys: key_positions, aggs: calls, close, emit }, &[&input], columns, Some(fields))
    }

    /// Windows by slices. A row is late once the last window that contains it is closed; a row of which earlier windows
    /// are closed counts in those that are open.
    fn hop(&mut self, plan: &Plan) -> Lowered {
        let Node::HopAggregate { start, slice, last, size, slide, offset, keys, aggs } = &plan.node else {
            unreachable!("the caller has looked")
        };
        let mut input = self.plan(&plan.inputs[0]);
        let mut wanted: Vec<(ColumnId, Expr)> =
            [*slice, *last].into_iter().map(|id| (id, self.columns.expr(id))).chain(keys.to_vec()).collect();
        self.agg_values(aggs, &mut wanted);
        let positions;
        (input, positions) = self.values(input, wanted);
        let emit = self.emit(&input);
        let close = self.timed_key(&input, &positions[1..2]).filter(|_| input.streaming && emit != EmitMode::Complete);
        input = self.drop_late(input, close);
        let key_positions = positions[2..2 + keys.len()].to_vec();
        let mut rest = positions[2 + keys.len()..].iter().copied();
        let calls: Vec<AggCall> = aggs.iter().map(|(_, a)| self.agg_call(a, &mut rest)).collect();
        let ids = keys.iter().map(|(id, _)| *id).chain(aggs.iter().map(|(id, _)| *id));
        let columns = [*start].into_iter().chain(ids).collect();
        let mut fields = vec![self.field(*start)];
        fields.extend(self.group_fields(&input, keys, &key_positions, aggs));
        let op = Op::HopAggregate {
            slice: positions[0],
            size: *size,
            slide: *slide,
            offset: *offset,
            keys: key_positions,
            aggs: calls,
            close: close.is_some(),
            emit,
        };
        self.push(op, &[&input], columns, Some(fields))
    }

    fn group_fields(
        &self,
        input: &Lowered,
        keys: &[(ColumnId, Expr)],
        positions: &[u32],
        aggs: &[(ColumnId, AggExpr)],
    ) -> Vec<Field> {
        let mut fields = vec![];
        for ((id, _), at) in keys.iter().zip(positions) {
            let below = &self.schema(input).fields[*at as usize];
            fields.push(Field::new(&self.columns.get(*id).name, below.data_type.clone(), below.nullable));
        }
        fields.extend(
            aggs.iter().map(|(id, a)| Field::new(&self.columns.get(*id).name, a.data_type.clone(), a.nullable)),
        );
        fields
    }

    fn session(
        &mut self,
        plan: &Plan,
        start: (ColumnId, ColumnId),
        end: (ColumnId, ColumnId),
        keys: &[(ColumnId, Expr)],
        aggs: &[(ColumnId, AggExpr)],
    ) -> Lowered {
        let input = self.plan(&plan.inputs[0]);
        let mut wanted = vec![(start.1, self.columns.expr(start.1)), (end.1, self.columns.expr(end.1))];
        wanted.extend(keys.to_vec());
        self.agg_values(aggs, &mut wanted);
        let (mut input, positions) = self.values(input, wanted);
        let emit = self.emit(&input);
        let close = self.timed_key(&input, &positions[1..2]).filter(|_| input.streaming && emit != EmitMode::Complete);
        input = self.drop_late(input, close);
        let key_positions = positions[2..2 + keys.len()].to_vec();
        let mut rest = positions[2 + keys.len()..].iter().copied();
        let calls: Vec<AggCall> = aggs.iter().map(|(_, a)| self.agg_call(a, &mut rest)).collect();
        let columns: Vec<ColumnId> = [start.0, end.0]
            .into_iter()
            .chain(keys.iter().map(|(id, _)| *id))
            .chain(aggs.iter().map(|(id, _)| *id))
            .collect();
        let mut fields = vec![self.field(start.0), self.field(end.0)];
        fields.extend(self.group_fields(&input, keys, &key_positions, aggs));
        let op = Op::SessionAggregate {
            start: positions[0],
            end: positions[1],
            keys: key_positions,
            aggs: calls,
            close: close.is_some(),
            emit,
        };
        self.push(op, &[&input], columns, Some(fields))
    }

    fn dedup(&mut self, plan: &Plan, keys: &[ColumnId], kind: DedupKind) -> Lowered {
        let mut input = self.plan(&plan.inputs[0]);
        let positions: Vec<u32> = keys.iter().map(|id| input.position(*id)).collect();
        let all: Vec<u32> = (0..input.columns.len() as u32).collect();
        let key_rule = self.timed_key(&input, &positions).filter(|_| input.streaming);
        let any_rule = key_rule.or_else(|| self.timed_key(&input, &all).filter(|_| input.streaming));
        input = self.drop_late(input, any_rule);
        let within = kind == DedupKind::WithinWatermark;
        let close = match any_rule {
            Some(rule) if within => Some(CloseRule { add_micros: rule.add_micros + self.delay(), ..rule }),
            _ => key_rule,
        };
        let columns = input.columns.clone();
        self.push(Op::Dedup { keys: positions, close, within_watermark: within }, &[&input], columns, None)
    }

    /// The largest delay of the query's watermarks.
    fn delay(&self) -> i64 {
        let mut delay = 0;
        self.root.walk(&mut |p| {
            if let Node::Watermark { spec, .. } = &p.node {
                delay = delay.max(spec.delay.micros);
            }
        });
        delay
    }

    fn join(&mut self, plan: &Plan, kind: JoinKind, on: Option<&Expr>, flag: Option<ColumnId>) -> Lowered {
        let (left_plan, right_plan) = (&plan.inputs[0], &plan.inputs[1]);
        let parts = stream_join::parts(on, left_plan, right_plan);
        let both = left_plan.streaming() && right_plan.streaming();
        let (left, right) = (self.plan(left_plan), self.plan(right_plan));
        let (mut keys, mut residual) = (parts.keys.clone(), parts.residual.clone());
        if both {
            // A stream join's keys never match NULL with NULL: `<=>` is left to the condition, and where it is the
            // only equality the rows are told apart by whether they are NULL.
            let (safe, plain): (Vec<_>, Vec<_>) = keys.into_iter().partition(|k| k.null_safe);
            keys = plain;
            for k in safe {
                let data_type = ssql_ir::DataType::Boolean;
                let args = vec![k.left.clone(), k.right.clone()];
                let whole = Expr::call("<=>", args, data_type, false);
                residual = crate::logical::conjunction(residual.into_iter().chain([whole]));
                if keys.is_empty() {
                    let null = |e: Expr| Expr::call("isnull", vec![e], ssql_ir::DataType::Boolean, false);
                    keys.push(stream_join::JoinKey { left: null(k.left), right: null(k.right), null_safe: false });
                }
            }
        }
        let (left_out, right_out) = (left.columns.clone(), right.columns.clone());
        let expiries =
            if both { stream_join::expiries(&parts, left_plan, right_plan, self.columns) } else { (None, None) };
        let left_keys: Vec<Expr> = keys.iter().map(|k| k.left.clone()).collect();
        let right_keys: Vec<Expr> = keys.iter().map(|k| k.right.clone()).collect();
        let (left, left_side) = self.side(left, left_keys, expiries.0, both);
        let (right, right_side) = self.side(right, right_keys, expiries.1, both);
        let residual = residual.map(|e| {
            let columns: Vec<ColumnId> = left.columns.iter().chain(&right.columns).copied().collect();
            let fields: Vec<Field> =
                self.schema(&left).fields.iter().chain(&self.schema(&right).fields).cloned().collect();
            self.over_both(&e, &columns, &fields)
        });
        let op = if both {
            Op::StreamJoin { kind, left: left_side, right: right_side, residual }
        } else {
            Op::HashJoin {
                kind,
                left_keys: left_side.keys,
                right_keys: right_side.keys,
                null_safe: keys.iter().map(|k| k.null_safe).collect(),
                residual,
            }
        };
        let nullable = |l: &Lowered, yes: bool, s: &Self| -> Vec<Field> {
            let mut fields = s.schema(l).fields.clone();
            fields.iter_mut().for_each(|f| f.nullable |= yes);
            fields
        };
        let mut columns = left.columns.clone();
        let mut fields = nullable(&left, matches!(kind, JoinKind::Right | JoinKind::Full), self);
        match kind {
            JoinKind::Inner | JoinKind::Left | JoinKind::Right | JoinKind::Full => {
                columns.extend(&right.columns);
                fields.extend(nullable(&right, matches!(kind, JoinKind::Left | JoinKind::Full), self));
            }
            JoinKind::Existence => {
                let flag = flag.unwrap_or(UNNAMED);
                columns.push(flag);
                fields.push(Field::new("exists", ssql_ir::DataType::Boolean, false));
            }
            JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::NullAwareAnti => {}
        }
        let joined = self.push(op, &[&left, &right], columns, Some(fields));
        // Columns that were computed for the join alone go no further.
        let mut keep: Vec<(ColumnId, Expr)> = vec![];
        for (i, id) in joined.columns.iter().enumerate() {
            let known = left_out.contains(id) || right_out.contains(id) || Some(*id) == flag;
            if *id != UNNAMED && known {
                let f = &self.schema(&joined).fields[i];
                keep.push((*id, Expr::column(*id, f.data_type.clone(), f.nullable)));
            }
        }
        self.map(joined, None, keep)
    }

    /// One side of a join with its keys, expiry and late rule as columns.
    fn side(&mut self, input: Lowered, keys: Vec<Expr>, expiry: Option<Expiry>, both: bool) -> (Lowered, JoinSide) {
        let n = keys.len();
        let mut wanted = keys;
        let add = expiry.as_ref().map(|e| e.add_micros);
        wanted.extend(expiry.map(|e| e.expr));
        let late = if both && input.timed {
            input.columns.iter().copied().find_map(|id| {
                let time = if id == UNNAMED { None } else { self.columns.get(id).event_time }?;
                let column = self.columns.expr(id);
                Some(match time.add_micros {
                    0 => column,
                    add => {
                        let micros = Expr::literal(ssql_ir::Literal::Int(add), ssql_ir::DataType::DAY_TO_SECOND);
                        let (t, nullable) = (column.data_type.clone(), column.nullable);
                        Expr::call("+", vec![column, micros], t, nullable)
                    }
                })
            })
        } else {
            None
        };
        let has_late = late.is_some();
        wanted.extend(late);
        let (input, positions) = self.with_values(input, wanted);
        let late = if has_late { positions.last().copied() } else { None };
        let expire = add.map(|add_micros| CloseRule { column: positions[n], add_micros });
        (input, JoinSide { keys: positions[..n].to_vec(), expire, late })
    }

    fn window_function(
        &mut self,
        plan: &Plan,
        partition: &[Expr],
        order: &[OrderKey],
        calls: &[(ColumnId, AnalyticExpr)],
    ) -> Lowered {
        let input = self.plan(&plan.inputs[0]);
        let mut wanted: Vec<Expr> = partition.to_vec();
        wanted.extend(order.iter().map(|k| k.expr.clone()));
        let mut values = vec![];
        let plain: Vec<(ColumnId, AggExpr)> = calls.iter().map(|(id, c)| (*id, c.call.clone())).collect();
        self.agg_values(&plain, &mut values);
        wanted.extend(values.into_iter().map(|(_, e)| e));
        let (input, positions) = self.with_values(input, wanted);
        let (p, o) = (partition.len(), order.len());
        let mut rest = positions[p + o..].iter().copied();
        let bound: Vec<WindowCall> = calls
            .iter()
            .map(|(_, c)| WindowCall { call: self.agg_call(&c.call, &mut rest), frame: c.frame.clone() })
            .collect();
        let mut columns = input.columns.clone();
        let mut fields = self.schema(&input).fields.clone();
        for (id, c) in calls {
            columns.push(*id);
            fields.push(Field::new(&self.columns.get(*id).name, c.call.data_type.clone(), c.call.nullable));
        }
        let op = Op::WindowFunction {
            partition: positions[..p].to_vec(),
            order: sort_keys(order, &positions[p..p + o]),
            calls: bound,
        };
        self.push(op, &[&input], columns, Some(fields))
    }
}

fn sort_keys(keys: &[OrderKey], positions: &[u32]) -> Vec<SortKey> {
    keys.iter()
        .zip(positions)
        .map(|(k, at)| SortKey { column: *at, descending: k.descending, nulls_first: k.nulls_first })
        .collect()
}

/// Whether an argument is handed over as a constant: the parameters of an aggregate, which come after its value; the
/// only argument of `ntile` is one.
fn is_literal_arg(call: &AggExpr, arg: &Expr, i: usize) -> bool {
    (i > 0 || &*call.function == "ntile") && matches!(arg.kind, ExprKind::Literal(_))
}

//! Streaming queries of a session: start, look up, wait.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ssql_engine::checkpoint::Durability;
use ssql_engine::connector::{Declaration, Options};
use ssql_engine::late::{LateData, LateSink};
use ssql_engine::progress::QueryProgress;
use ssql_engine::query::RestartPolicy;
use ssql_engine::query::batch::canceled;
use ssql_engine::query::handle::{OnProgress, no_such_query};
use ssql_engine::{EngineError, QueryHandle, QuerySpec, Result, Trigger};
use ssql_grammar::{SourceFile, Span};
use ssql_ir::Op;
use ssql_plan::{SinkTarget, StreamingPlan, option_span};

use super::advice::Advice;
use super::relations::{connector_name, connector_of};
use super::{Failure, Outcome, Session, Started, diagnostic, not_yet, user};

impl Session {
    /// Starts a planned query; returns its name, and what the user should know of how it was taken up.
    pub(super) fn start_query(
        &mut self,
        file: &SourceFile,
        span: Span,
        mut plan: StreamingPlan,
    ) -> Result<(String, Vec<String>)> {
        if plan.sink == SinkTarget::Console {
            self.name_console_query(&mut plan);
        }
        if self.is_running(&plan.name) {
            return Err(user("QUERY_ALREADY_EXISTS", format!("a query named `{}` is already running", plan.name))
                .with_help(format!("STOP QUERY {} first, or name this one with CREATE QUERY.", plan.name)));
        }
        let mut sources = Vec::new();
        for node in &plan.pipeline.nodes {
            if let Op::Source { relation, streaming: true, .. } = &node.op {
                let relation = self
                    .catalog
                    .relation(relation)
                    .ok_or_else(|| EngineError::internal(format!("the plan reads `{relation}`, which is gone")))?;
                if relation.rejects_to.is_some() {
                    return Err(not_yet("REJECTS TO"));
                }
                let declaration = self.declaration(relation, relation.schema.clone().unwrap_or_default());
                sources.push((connector_name(relation).to_owned(), declaration));
            }
        }
        let sink = self.sink_declaration(&plan)?;
        let late = self.late_declaration(&plan)?;
        let trigger = match plan.trigger {
            _ if self.config.manual => Trigger::Manual,
            ssql_plan::Trigger::Default => Trigger::Default,
            ssql_plan::Trigger::ProcessingTime { micros } => Trigger::ProcessingTime(micros),
            ssql_plan::Trigger::AvailableNow => Trigger::AvailableNow,
            ssql_plan::Trigger::Once => Trigger::Once,
            ssql_plan::Trigger::Continuous { micros } => Trigger::Continuous(micros),
        };
        let close_at_end = plan.options.iter().any(|o| o.key == "atEnd" && o.value.eq_ignore_ascii_case("close"));
        let on_progress = self.watchers();
        let policy = restart_policy(&plan);
        let name = plan.name.clone();
        let (registry, tables) = (Arc::clone(&self.registry), Arc::new(self.tables()));
        let (time_zone, clock, runtime) = (self.time_zone(), Arc::clone(&self.clock), self.runtime());
        let checkpoint = plan.checkpoint.as_ref().filter(|_| !self.config.rehearsal);
        let (checkpoint, durability) = (checkpoint.map(|c| PathBuf::from(self.place(c))), self.durability());
        // A query that is started again opens its sources and its sink anew.
        let make = move || -> Result<QuerySpec> {
            let open = |(connector, declaration): &(String, Declaration)| -> Result<_> {
                Ok(connector_of(&registry, connector)?.source(declaration)?)
            };
            Ok(QuerySpec {
                name: plan.name.clone(),
                checkpoint: checkpoint.clone(),
                durability,
                pipeline: plan.pipeline.clone(),
                sources: sources.iter().map(open).collect::<Result<_>>()?,
                tables: tables.clone(),
                sink: connector_of(&registry, &sink.0)?.sink(&sink.1)?,
                late: match &late {
                    Some((data, connector, declaration)) => Some(LateSink {
                        data: data.clone(),
                        sink: connector_of(&registry, connector)?.sink(declaration)?,
                    }),
                    None => None,
                },
                trigger,
                close_at_end,
                time_zone: time_zone.clone(),
                clock: Arc::clone(&clock),
                runtime: runtime.clone(),
            })
        };
        let handle = Arc::new(match policy {
            Some(policy) => QueryHandle::start_again_on_failure(Box::new(make), policy, on_progress)?,
            None => QueryHandle::start(make()?, on_progress)?,
        });
        let bell = Arc::clone(&self.bell);
        handle.on_end(Box::new(move || bell.ring()));
        let notes = handle.notes().to_vec();
        let mut queries = self.queries();
        queries.retain(|q| !q.handle.name().eq_ignore_ascii_case(&name));
        queries.push(Started { handle: Arc::clone(&handle), file: file.clone(), span, reported: false });
        drop(queries);
        // A stop that came while the query was being started has not seen it.
        if self.stopping.load(Ordering::SeqCst) {
            handle.request_stop();
        }
        Ok((name, notes))
    }

    /// How checkpoints of queries started now are kept.
    fn durability(&self) -> Durability {
        let number = |key: &str, default: u64| self.catalog.settings.get(key).parse().unwrap_or(default);
        let default = Durability::default();
        Durability {
            retain: number("checkpoint.retain", default.retain),
            snapshot_floor: number("state.snapshot.bytes", default.snapshot_floor),
            allow_reset: self.config.allow_reset,
        }
    }

    fn is_running(&self, name: &str) -> bool {
        self.queries().iter().any(|q| q.handle.name().eq_ignore_ascii_case(name) && q.handle.is_active())
    }

    /// Queries that write to the terminal have no name of their own: `console`, `console_2`, ... in the order of starting.
    fn name_console_query(&self, plan: &mut StreamingPlan) {
        let first = plan.name.clone();
        let mut n = 1;
        while self.is_running(&plan.name) {
            n += 1;
            plan.name = format!("{first}_{n}");
        }
        // The checkpoint below checkpoint.root bears the query's name.
        if let Some(root) = plan.checkpoint.as_ref().and_then(|c| c.strip_suffix(&format!("/{first}"))) {
            plan.checkpoint = Some(format!("{root}/{}", plan.name));
        }
    }

    /// As [`Session::sink_declaration`], of the sink of late rows, and what goes there.
    fn late_declaration(&mut self, plan: &StreamingPlan) -> Result<Option<(LateData, String, Declaration)>> {
        let Some(name) = &plan.late_data_to else { return Ok(None) };
        let gone =
            || EngineError::internal(format!("the plan sends late rows to `{name}`, which has no place for them"));
        let data = LateData::of(&plan.pipeline).ok_or_else(gone)?;
        let relation = self.catalog.relation(name).ok_or_else(gone)?;
        if relation.foreach_batch.is_some() {
            return Err(not_yet("FOREACH BATCH"));
        }
        let declaration = self.declaration(relation, data.schema().clone());
        let connector = connector_name(relation).to_owned();
        self.catalog.set_schema(name, data.schema().clone());
        Ok(Some((data, connector, declaration)))
    }

    /// The sink's connector and what it is told, and lets the catalog know the sink's columns from now on.
    fn sink_declaration(&mut self, plan: &StreamingPlan) -> Result<(String, Declaration)> {
        match &plan.sink {
            SinkTarget::Named(name) => {
                let relation = self
                    .catalog
                    .relation(name)
                    .ok_or_else(|| EngineError::internal(format!("the plan writes to `{name}`, which is gone")))?;
                if relation.foreach_batch.is_some() {
                    return Err(not_yet("FOREACH BATCH"));
                }
                let declaration = self.declaration(relation, plan.schema.clone());
                let connector = connector_name(relation).to_owned();
                let name = relation.name.clone();
                self.catalog.set_schema(&name, plan.schema.clone());
                Ok((connector, declaration))
            }
            SinkTarget::Console => {
                let declaration = Declaration {
                    name: plan.name.clone(),
                    schema: plan.schema.clone(),
                    location: None,
                    options: Options::new(plan.options.iter().map(|o| (o.key.clone(), o.value.clone()))),
                    partition_by: Vec::new(),
                    time_zone: self.time_zone(),
                };
                Ok(("console".to_owned(), declaration))
            }
        }
    }

    /// What is done at each progress of a query.
    fn watchers(&self) -> Option<OnProgress> {
        let (print, log) = (self.config.progress, self.progress_log.clone());
        let metrics = self.config.metrics.clone();
        let advice = Mutex::new(Advice::default());
        Some(Box::new(move |p| {
            if print {
                print_progress(p);
            }
            if let Some(log) = &log {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(e) = writeln!(log, "{}", p.json()) {
                    tracing::warn!("the progress log cannot be written: {e}");
                }
            }
            if let Some(metrics) = &metrics {
                metrics.note(p);
            }
            tracing::debug!(
                query = p.name,
                batch = p.batch_id,
                rows_in = p.num_input_rows,
                rows_out = p.sink.num_output_rows,
                millis = p.batch_duration,
                "batch committed"
            );
            for text in advice.lock().unwrap_or_else(PoisonError::into_inner).note(p) {
                tracing::warn!(query = p.name, "{text}");
            }
        }))
    }

    /// Ends a query and forgets it.
    pub(super) fn drop_query(&self, name: &str, if_exists: bool) -> Result<()> {
        match self.handle(name) {
            Ok(handle) => handle.stop(),
            Err(_) if if_exists => return Ok(()),
            Err(e) => return Err(e),
        }
        self.queries().retain(|q| !q.handle.name().eq_ignore_ascii_case(name));
        Ok(())
    }

    fn queries(&self) -> MutexGuard<'_, Vec<Started>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handles of all queries, in the order in which they were started.
    pub fn handles(&self) -> Vec<Arc<QueryHandle>> {
        self.queries().iter().map(|q| Arc::clone(&q.handle)).collect()
    }

    /// The handle of a query.
    pub fn handle(&self, name: &str) -> Result<Arc<QueryHandle>> {
        let found =
            self.queries().iter().find(|q| q.handle.name().eq_ignore_ascii_case(name)).map(|q| q.handle.clone());
        found.ok_or_else(|| no_such_query(name))
    }

    /// The failure of an ended query, told once.
    pub(super) fn take_failure(&self, name: &str) -> Option<Failure> {
        let mut queries = self.queries();
        let started = queries.iter_mut().find(|q| q.handle.name() == name)?;
        let error = started.handle.error()?;
        started.reported = true;
        Some(Failure { file: started.file.clone(), diagnostics: vec![diagnostic(&error, started.span)] })
    }

    pub(super) fn await_query(
        &self,
        name: Option<&str>,
        timeout_micros: Option<i64>,
    ) -> Result<std::result::Result<Outcome, Failure>> {
        if self.config.manual {
            // No trigger fires by itself in a test session: what there is to wait for has to be done here.
            return Ok(self.process_all_available(name)?.map(|()| Outcome::Done));
        }
        let timeout = timeout_micros.map(|m| Duration::from_micros(m.unsigned_abs()));
        let ended = match name {
            Some(name) => self.await_any(&[self.handle(name)?], timeout)?,
            None => self.await_any(&self.handles(), timeout)?,
        };
        let Some(ended) = ended else {
            return Ok(Ok(Outcome::Message("the query is still running".to_owned())));
        };
        Ok(match self.take_failure(&ended) {
            Some(failure) => Err(failure),
            None => Ok(Outcome::Done),
        })
    }

    /// Waits for the first of these to end; its name, or `None` when the time is up (or there is no query).
    ///
    /// # Errors
    /// The statement was stopped from outside.
    fn await_any(&self, handles: &[Arc<QueryHandle>], timeout: Option<Duration>) -> Result<Option<String>> {
        let deadline = timeout.map(|t| std::time::Instant::now() + t);
        while !handles.is_empty() {
            let seen = self.bell.rung();
            if let Some(ended) = handles.iter().find(|h| !h.is_active()) {
                return Ok(Some(ended.name().to_owned()));
            }
            if self.interrupt.load(Ordering::SeqCst) {
                return Err(canceled());
            }
            if !self.bell.wait_after(seen, deadline) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    pub(super) fn process_all_available(&self, name: Option<&str>) -> Result<std::result::Result<(), Failure>> {
        let handles = match name {
            Some(name) => vec![self.handle(name)?],
            // A query that has ended and whose failure was told is done with.
            None => self.queries().iter().filter(|q| !q.reported).map(|q| Arc::clone(&q.handle)).collect(),
        };
        let mut failure = None;
        for handle in handles {
            if handle.process_all_available().is_err() {
                let told = self.take_failure(handle.name());
                failure = failure.or(told);
            }
        }
        Ok(failure.map_or(Ok(()), Err))
    }

    /// Ends all queries after their current batches.
    pub fn stop_all(&self) {
        let handles = self.handles();
        handles.iter().for_each(|h| h.request_stop());
        handles.iter().for_each(|h| h.stop());
    }

    /// Waits until all queries have ended.
    ///
    /// # Errors
    /// The failures that have not been told yet.
    pub fn await_all(&self) -> Result<(), Vec<Failure>> {
        let mut failures = Vec::new();
        for handle in self.handles() {
            if !self.config.manual {
                handle.await_termination(None);
            }
            let told = self.queries().iter().any(|q| q.handle.name() == handle.name() && q.reported);
            if !told {
                failures.extend(self.take_failure(handle.name()));
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(failures) }
    }
}

/// What OPTIONS (restart 'on-failure', ...) ask for. The planner has checked the values.
fn restart_policy(plan: &StreamingPlan) -> Option<RestartPolicy> {
    let option = |name: &str| plan.options.iter().find(|o| o.key.eq_ignore_ascii_case(name)).map(|o| o.value.as_str());
    option("restart").filter(|word| word.eq_ignore_ascii_case("on-failure"))?;
    let span = |name: &str, default: Duration| {
        option(name).and_then(option_span).map_or(default, |us| Duration::from_micros(us.unsigned_abs()))
    };
    let default = RestartPolicy::default();
    let name = plan.name.clone();
    Some(RestartPolicy {
        max_attempts: option("restart.maxAttempts").and_then(|n| n.trim().parse().ok()).unwrap_or(default.max_attempts),
        delay: span("restart.delay", default.delay),
        max_delay: span("restart.maxDelay", default.max_delay),
        on_restart: Some(Arc::new(move |e, attempt, wait| {
            eprintln!("query `{name}` failed: [{}] {}; attempt {attempt} follows in {wait:?}", e.condition, e.message);
        })),
    })
}

/// One line a micro-batch.
fn print_progress(p: &QueryProgress) {
    let name = p.name.as_deref().unwrap_or("query");
    let mut line = format!(
        "[{name}] batch {}: {} rows in, {} out, {} ms",
        p.batch_id, p.num_input_rows, p.sink.num_output_rows, p.batch_duration
    );
    if let Some(watermark) = p.event_time.get("watermark") {
        line.push_str(&format!(", watermark {watermark}"));
    }
    let state: u64 = p.state_operators.iter().map(|s| s.num_rows_total).sum();
    if state > 0 {
        line.push_str(&format!(", {state} groups"));
    }
    let late: u64 = p.state_operators.iter().map(|s| s.num_rows_dropped_by_watermark).sum();
    if late > 0 {
        line.push_str(&format!(", {late} late"));
    }
    eprintln!("{line}");
}

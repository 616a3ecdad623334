//! The memory stream. Its offset counts additions: `n` means that the first `n + 1` are taken, as in Spark.

use ssql_engine::connector::{
    Arrival, Batch, ConnectorError, Domain, Offset, ReadLimit, Restored, Source, Split, Wake,
};
use ssql_ir::Schema;

use super::hub::{Additions, MemoryHub, Shared, lock};

pub(super) struct MemorySource {
    name: String,
    schema: Schema,
    stream: Shared<Additions>,
    hub: MemoryHub,
    /// The hub knows whom to wake.
    waking: bool,
    /// Additions that may be seen after [`Source::freeze`].
    frozen: Option<usize>,
}

impl MemorySource {
    pub(super) fn new(name: &str, schema: Schema, hub: &MemoryHub) -> MemorySource {
        let stream = hub.fed(name);
        MemorySource { name: name.to_string(), schema, stream, hub: hub.clone(), waking: false, frozen: None }
    }

    /// Additions up to that offset.
    fn taken(&self, offset: Option<&Offset>) -> Result<usize, ConnectorError> {
        let Some(offset) = offset else { return Ok(0) };
        let taken = offset.as_i64().and_then(|n| usize::try_from(n + 1).ok());
        taken.ok_or_else(|| {
            let message = format!("`{offset}` is no offset of memory stream `{}`", self.name);
            ConnectorError::new("STREAM_FAILED", Domain::Internal, message)
        })
    }
}

impl Source for MemorySource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn description(&self) -> String {
        let columns: Vec<&str> = self.schema.fields.iter().map(|f| f.name.as_str()).collect();
        format!("MemoryStream[{}]", columns.join(","))
    }

    fn restore(&mut self, restored: Restored) -> Result<(), ConnectorError> {
        let taken = self.taken(restored.offset.as_ref())?;
        let held = lock(&self.stream).len();
        if taken > held {
            let message = format!(
                "the checkpoint has read {taken} additions of memory stream `{}`, which now holds {held}",
                self.name
            );
            return Err(ConnectorError::new("STREAM_FAILED", Domain::User, message)
                .with_help("a memory stream does not outlive its process; use a new checkpoint"));
        }
        Ok(())
    }

    fn latest(
        &mut self,
        start: Option<&Offset>,
        _limit: ReadLimit,
        _now_micros: i64,
    ) -> Result<Option<Batch>, ConnectorError> {
        let held = self.frozen.unwrap_or_else(|| lock(&self.stream).len());
        let new = held > self.taken(start)?;
        Ok(new.then(|| Batch { end: Offset::from(held - 1), log_entry: None }))
    }

    fn freeze(&mut self, _now_micros: i64) -> Result<(), ConnectorError> {
        self.frozen = Some(lock(&self.stream).len());
        Ok(())
    }

    fn splits(
        &mut self,
        start: Option<&Offset>,
        end: &Offset,
        projection: &[u32],
    ) -> Result<Vec<Box<dyn Split>>, ConnectorError> {
        let (from, to) = (self.taken(start)?, self.taken(Some(end))?);
        let stream = lock(&self.stream);
        let additions = stream.get(from..to).ok_or_else(|| {
            let message = format!("memory stream `{}` has no additions {from} to {to}", self.name);
            ConnectorError::new("STREAM_FAILED", Domain::Internal, message)
        })?;
        Ok(super::splits(additions.concat(), projection))
    }

    fn committed(&mut self, _end: &Offset) -> Result<(), ConnectorError> {
        // Rows stay: a later query sees the stream from its beginning.
        Ok(())
    }

    fn arrival(&mut self, _now_micros: i64, wake: &Wake) -> Arrival {
        if !std::mem::replace(&mut self.waking, true) {
            self.hub.wake_on_addition(&self.name, wake);
        }
        Arrival::Wakes
    }

    fn newest(&self) -> Option<Offset> {
        lock(&self.stream).len().checked_sub(1).map(Offset::from)
    }
}

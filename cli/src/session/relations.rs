//! Relations: from the catalog's facts to a connector's declaration, and the tables that queries read.

use std::collections::HashMap;
use std::sync::Arc;

use ssql_engine::connector::{Declaration, Options, Registry, StaticTable, resolve_location};
use ssql_engine::exec::Tables;
use ssql_engine::{EngineError, Result};
use ssql_ir::{Schema, SchemaRule};
use ssql_plan::{CreateRelation, Relation, RelationKind};

use super::{Session, user};

/// Connector of relations that name none.
pub const MEMORY: &str = "memory";

/// Static relations as they were declared when a query began.
pub struct SessionTables {
    registry: Arc<Registry>,
    relations: HashMap<String, (String, Declaration)>,
}

impl Tables for SessionTables {
    fn table(&self, relation: &str) -> Result<Arc<dyn StaticTable>> {
        let (connector, declaration) = self
            .relations
            .get(&relation.to_lowercase())
            .ok_or_else(|| EngineError::internal(format!("the plan reads `{relation}`, which is no relation")))?;
        Ok(Arc::from(connector_of(&self.registry, connector)?.table(declaration)?))
    }
}

/// The connector of that name. The planner has checked that it exists.
pub fn connector_of<'a>(registry: &'a Registry, name: &str) -> Result<&'a dyn ssql_engine::connector::Connector> {
    registry.get(name).ok_or_else(|| user("DATA_SOURCE_NOT_FOUND", format!("there is no connector `{name}`")))
}

impl Session {
    /// All relations that hold rows, for one query.
    pub(super) fn tables(&self) -> SessionTables {
        let relations = self.catalog.relations().filter(|r| r.kind != RelationKind::View).map(|r| {
            let declaration = self.declaration(r, r.schema.clone().unwrap_or_default());
            (r.name.to_lowercase(), (connector_name(r).to_owned(), declaration))
        });
        SessionTables { registry: Arc::clone(&self.registry), relations: relations.collect() }
    }

    /// What the connector is told of a relation.
    pub(super) fn declaration(&self, relation: &Relation, schema: Schema) -> Declaration {
        let used = relation.connector.as_ref();
        let options = used.iter().flat_map(|c| &c.options).map(|o| (o.key.clone(), o.value.clone()));
        let partition_by = used
            .iter()
            .flat_map(|c| &c.partitioned_by)
            .filter_map(|name| schema.fields.iter().position(|f| f.name.eq_ignore_ascii_case(name)))
            .map(|i| i as u32)
            .collect();
        Declaration {
            name: relation.name.clone(),
            location: used.and_then(|c| c.location.as_ref()).map(|l| self.place(l)),
            options: Options::new(options),
            partition_by,
            time_zone: self.time_zone(),
            schema,
        }
    }

    /// A location of the script as an absolute one; an address with a scheme stays as it is.
    pub(super) fn place(&self, location: &str) -> String {
        if location.contains("://") && !location.starts_with("file:") {
            return location.to_owned();
        }
        let base = std::path::absolute(&self.config.base_dir).unwrap_or_else(|_| self.config.base_dir.clone());
        resolve_location(location, &base).display().to_string()
    }

    /// Registers a relation. Where the data carry the columns they are read now.
    pub(super) fn create_relation(&mut self, create: CreateRelation) -> Result<()> {
        if create.exists {
            return Ok(());
        }
        let mut relation = create.relation;
        if create.or_replace && self.catalog.relation(&relation.name).is_some() {
            self.drop_relation(&relation.name.clone())?;
        }
        let reads = matches!(relation.kind, RelationKind::Stream | RelationKind::Table);
        if reads && relation.schema.is_none() {
            let connector = connector_of(&self.registry, connector_name(&relation))?;
            if matches!(connector.desc().schema, SchemaRule::Carried) {
                relation.schema = Some(connector.carried_schema(&self.declaration(&relation, Schema::default()))?);
            }
        }
        if connector_name(&relation) == MEMORY && reads {
            self.hub.create(&relation.name);
        }
        self.catalog.register(relation);
        Ok(())
    }

    /// Removes a relation, and the rows that memory holds of it.
    pub(super) fn drop_relation(&mut self, name: &str) -> Result<()> {
        if let Some(relation) = self.catalog.remove(name)
            && connector_name(&relation) == MEMORY
        {
            self.hub.drop_relation(&relation.name);
        }
        Ok(())
    }
}

/// The connector that a relation is kept by.
pub fn connector_name(relation: &Relation) -> &str {
    relation.connector.as_ref().map_or(MEMORY, |c| c.name.as_str())
}

//! The schema of a workload's tables on PostgreSQL; see [`crate::schema_ownership`].

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::Engine;
use crate::connection::{Connection, RequestError};
use crate::error::{CommitState, SessionError};
use crate::postgres::connection::PostgresConnection;
use crate::schema_ownership::names::WorkloadTables;
use crate::schema_ownership::state::{
    Afterwards, CLAIM, Definition, ForeignSchema, ForeignTable, OwnershipError, SchemaClaim,
    SchemaOwner, State,
};
use crate::target::Target;

fn refused(error: tokio_postgres::Error) -> SessionError {
    SessionError::from_postgres(&error, CommitState::NotSent)
}

/// Who made the schema of `workload`, which has one of its own.
///
/// # Errors
/// Also when it is there and the user may not look into it, or not at all of what Underlay made in it.
async fn state(client: &Client, workload: WorkloadTables) -> Result<State, SessionError> {
    let schema = workload.schema().expect("a workload with a schema of its own");
    let row = client
        .query_opt(
            "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1",
            &[&schema],
        )
        .await
        .map_err(refused)?;
    let Some(row) = row else { return Ok(State::Absent) };
    if !row.get::<_, bool>(0) {
        return Err(SessionError::denial(format!("permission denied for schema {schema}")));
    }
    let contents = contents(client, schema, workload).await?;
    let state = contents.state(workload);
    match contents.unreadable {
        Some(table) if state == State::Ours => {
            Err(SessionError::denial(format!("permission denied for table {schema}.{table}")))
        }
        _ => Ok(state),
    }
}

impl SchemaOwner for PostgresConnection {
    fn with_database(target: &Target, _: WorkloadTables) -> Target {
        target.clone()
    }

    fn table(workload: WorkloadTables, name: &str) -> String {
        workload.schema().map_or_else(|| name.to_string(), |schema| format!("{schema}.{name}"))
    }

    async fn state(target: &Target, workload: WorkloadTables) -> Result<State, SessionError> {
        state(&target.connect().await?, workload).await
    }

    async fn create(
        target: &Target,
        found: State,
        definition: &Definition<'_>,
    ) -> Result<(), RequestError> {
        let schema = definition.workload.schema().filter(|_| found == State::Absent);
        let schema = schema.map_or_else(String::new, |schema| format!("CREATE SCHEMA {schema}"));
        let marker_row = definition.marker_row.replace("{made}", "");
        let first = [schema.as_str(), definition.marker, &marker_row];
        let statements = first.into_iter().chain(definition.statements.iter().map(String::as_str));
        let sql: Vec<&str> = statements.filter(|sql| !sql.is_empty()).collect();
        // One simple query is one transaction: either all of it is there, or nothing is.
        let mut connection = PostgresConnection::connect(target, 0).await?;
        connection.query(sql.join(";\n").as_bytes()).await.map(drop)
    }

    async fn remove(
        target: &Target,
        workload: WorkloadTables,
        claim: SchemaClaim,
    ) -> Result<(), SessionError> {
        remove(&target.connect().await?, workload, claim).await
    }

    async fn state_of_numbered(
        target: &Target,
        workload: WorkloadTables,
        stem: &str,
    ) -> Result<(State, Option<String>), SessionError> {
        let client = target.connect().await?;
        let pattern = format!("^{stem}[0-9]+$");
        let row =
            client.query_one(NUMBERED, &[&pattern, &workload.marker()]).await.map_err(refused)?;
        let denied =
            |what: String| Err(SessionError::denial(format!("permission denied for {what}")));
        let (unreadable, hidden): (Option<String>, Option<String>) = (row.get(2), row.get(3));
        match (row.get(0), row.get(1)) {
            (_, true) => match unreadable {
                Some(table) => denied(format!("table {table}")),
                None => Ok((State::Ours, None)),
            },
            (table @ Some(_), false) => Ok((State::Foreign, table)),
            (None, false) => match hidden {
                Some(schema) => denied(format!("schema {schema}")),
                None => Ok((State::Free, None)),
            },
        }
    }

    async fn require_sight(_: &Target, _: WorkloadTables, _: &str) -> Result<(), SessionError> {
        Ok(())
    }

    async fn release_database(_: &Target, _: WorkloadTables, _: bool) -> Result<(), SessionError> {
        Ok(())
    }
}

/// Of tables whose names match `$1` and of the marker `$2`, in the search path: the first such table, whether the marker is there, the first
/// of them that the user may not read, and the first schema of the path with such a table that the user may not look into.
const NUMBERED: &str = "SELECT (SELECT min(relname::text) FROM pg_class WHERE relname ~ $1::text \
       AND relkind IN ('r', 'p', 'v', 'm', 'f') AND pg_table_is_visible(oid)), to_regclass($2::text) IS NOT NULL, \
     (SELECT min(relname::text) FROM pg_class \
       WHERE (relname ~ $1::text AND relkind = 'r' OR relname = $2::text) \
         AND pg_table_is_visible(oid) AND NOT has_table_privilege(oid, 'SELECT')), \
     (SELECT min(nspname::text) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
       WHERE (relname ~ $1::text OR relname = $2::text) \
         AND NOT has_schema_privilege(n.oid, 'USAGE') AND nspname = ANY \
           (SELECT replace(btrim(part, ' \"'), '$user', current_user) \
              FROM unnest(string_to_array(current_setting('search_path'), ',')) AS part))";

/// What a schema holds under the names of a workload, and how much else.
struct Contents {
    tables: Vec<String>,
    routines: Vec<String>,
    others: u64,
    /// The first one that is no ordinary table, and what it is.
    odd: Option<(String, String)>,
    markers: Vec<String>,
    is_claimed: bool,
    /// The first table of the workload that the user may not read.
    unreadable: Option<String>,
}

impl Contents {
    /// Whose they are.
    fn state(&self, workload: WorkloadTables) -> State {
        let in_the_way = !self.tables.is_empty() || self.odd.is_some();
        if self.markers.iter().any(|marker| marker == workload.marker()) {
            State::Ours
        } else if self.is_claimed && !in_the_way {
            State::Free
        } else {
            State::Foreign
        }
    }
}

async fn contents(
    client: &Client,
    schema: &str,
    workload: WorkloadTables,
) -> Result<Contents, SessionError> {
    let rows = client
        .query(
            // A child of another table goes only with its parent, which has another name.
            "SELECT relname::text, CASE WHEN relkind = 'r' AND NOT relispartition THEN '' \
               WHEN relkind = 'r' THEN 'a partition of another table' \
               WHEN relkind = 'p' THEN 'a partitioned table' WHEN relkind = 'v' THEN 'a view' \
               WHEN relkind = 'm' THEN 'a materialized view' WHEN relkind = 'S' THEN 'a sequence' \
               ELSE 'a foreign table' END, relkind <> 'r' OR has_table_privilege(pg_class.oid, 'SELECT') \
             FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
             WHERE nspname = $1 AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f') \
               AND NOT (relkind = 'S' AND EXISTS (SELECT FROM pg_depend d WHERE d.objid = pg_class.oid \
                 AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))) \
             ORDER BY relname",
            &[&schema],
        )
        .await
        .map_err(refused)?;
    let mut contents = Contents {
        tables: Vec::new(),
        routines: Vec::new(),
        others: 0,
        odd: None,
        markers: Vec::new(),
        is_claimed: false,
        unreadable: None,
    };
    for row in &rows {
        let (name, kind, is_readable): (String, String, bool) =
            (row.get(0), row.get(1), row.get(2));
        let is_marker = |other: &WorkloadTables| other.marker() == name;
        if !is_readable && (workload.has_table(&name) || workload.marker() == name) {
            contents.unreadable.get_or_insert_with(|| name.clone());
        }
        if workload.has_table(&name) {
            if kind.is_empty() {
                contents.tables.push(name);
            } else {
                contents.odd.get_or_insert((name, kind));
            }
        } else if WorkloadTables::ALL.iter().any(is_marker) {
            contents.markers.push(name);
        } else if name == CLAIM {
            contents.is_claimed = true;
        } else {
            contents.others += 1;
        }
    }
    let routines = workload.routines(Engine::Postgresql);
    let rows = client
        .query(
            "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace \
             WHERE nspname = $1 AND proname::text = ANY($2) ORDER BY 1",
            &[&schema, &routines],
        )
        .await
        .map_err(refused)?;
    contents.routines = rows.iter().map(|row| row.get(0)).collect();
    Ok(contents)
}

/// The statements that remove `tables` and `routines`; tables may refer to each other, and no other table to
/// them.
fn removal(schema: &str, tables: &[String], routines: &[String]) -> String {
    let mut sql = String::new();
    if !tables.is_empty() {
        let names: Vec<String> =
            tables.iter().map(|name| format!("{}.{}", quoted(schema), quoted(name))).collect();
        sql.push_str(&format!("DROP TABLE {};", names.join(", ")));
    }
    for routine in routines {
        // The server's own text has quotes and arguments.
        sql.push_str(&format!("DROP ROUTINE {routine};"));
    }
    sql
}

/// Removes what `workload` made in its schema, and the schema if Underlay made it and nothing else is there.
async fn remove(
    client: &Client,
    workload: WorkloadTables,
    claim: SchemaClaim,
) -> Result<(), SessionError> {
    let schema = workload.schema().expect("a workload with a schema of its own");
    let mut found = contents(client, schema, workload).await?;
    found.tables.push(workload.marker().to_string());
    if found.is_claimed && claim == SchemaClaim::Release {
        found.tables.push(CLAIM.to_string());
    }
    // One simple query is one transaction: either all of it goes, or nothing does.
    let sql = removal(schema, &found.tables, &found.routines);
    client.batch_execute(&sql).await.map_err(refused)?;
    if found.is_claimed {
        return Ok(());
    }
    match client.batch_execute(&format!("DROP SCHEMA {}", quoted(schema))).await {
        // Another program has created something there meanwhile.
        Err(error) if error.code() == Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST) => Ok(()),
        dropped => dropped.map_err(refused),
    }
}

/// See [`crate::schema_ownership::look`].
pub(crate) async fn look(
    client: &Client,
    workload: WorkloadTables,
) -> Result<Option<ForeignSchema>, OwnershipError> {
    let row = client
        .query_one(
            "SELECT current_database()::text, coalesce((SELECT nspname FROM pg_class \
                   JOIN pg_namespace n ON n.oid = relnamespace \
                   WHERE relname ~ '^sbtest[0-9]+$' AND pg_table_is_visible(pg_class.oid) \
                   ORDER BY array_position(current_schemas(false), nspname) LIMIT 1), current_schema())::text, \
               (SELECT datistemplate FROM pg_database WHERE datname = current_database())",
            &[],
        )
        .await
        .map_err(refused)?;
    let (database, session_schema): (String, Option<String>) = (row.get(0), row.get(1));
    let Some(schema) = workload.schema().map(str::to_string).or(session_schema) else {
        return Ok(None);
    };
    if row.get(2) {
        return Err(OwnershipError::System(database));
    }
    if schema.starts_with("pg_") || schema == "information_schema" {
        return Err(OwnershipError::System(schema));
    }
    let found = contents(client, &schema, workload).await?;
    let is_foreign = match workload.schema() {
        Some(_) => state(client, workload).await? == State::Foreign,
        // Its place is shared: only what is in the way is foreign.
        None => {
            found.state(workload) == State::Foreign
                && !(found.tables.is_empty() && found.odd.is_none())
        }
    };
    if !is_foreign {
        return Ok(None);
    }
    if let Some(marker) = found.markers.into_iter().next() {
        return Err(OwnershipError::OtherWorkload { place: schema, marker });
    }
    if let Some((name, kind)) = found.odd {
        return Err(OwnershipError::NotATable { place: schema, name, kind });
    }
    let mut tables = Vec::new();
    for name in found.tables {
        let sql = format!("SELECT count(*) FROM {}.{}", quoted(&schema), quoted(&name));
        let rows: i64 = client.query_one(&sql, &[]).await.map_err(refused)?.get(0);
        tables.push(ForeignTable { name, rows: rows.unsigned_abs() });
    }
    Ok(Some(ForeignSchema {
        name: format!("{database}.{schema}"),
        tables,
        routines: found.routines,
        others: found.others,
        place: schema,
    }))
}

/// See [`crate::schema_ownership::clear`].
pub(crate) async fn clear(
    client: &Client,
    workload: WorkloadTables,
    found: &ForeignSchema,
    afterwards: Afterwards,
) -> Result<(), OwnershipError> {
    let names: Vec<String> = found.tables.iter().map(|table| table.name.clone()).collect();
    let mut sql = removal(&found.place, &names, &found.routines);
    if afterwards == Afterwards::Load && workload.schema().is_some() {
        let place = quoted(&found.place);
        sql.push_str(&format!("CREATE TABLE IF NOT EXISTS {place}.{CLAIM} ();"));
    }
    client.batch_execute(&sql).await.map_err(|error| match error.code() {
        Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST) => {
            OwnershipError::InUse { place: found.place.clone(), why: refused(error).message }
        }
        _ => refused(error).into(),
    })
}

/// An identifier in quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

//! The database of a workload's tables on MariaDB and MySQL; see [`crate::schema_ownership`].

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::connection::{connect, quoted};
use super::error::ABSENT;
use super::workload_connection::MariadbConnection;
use crate::Engine;
use crate::connection::{Connection, RequestError};
use crate::error::{CommitState, SessionError};
use crate::schema_ownership::names::WorkloadTables;
use crate::schema_ownership::state::{
    Afterwards, CLAIM, Definition, ForeignSchema, ForeignTable, OwnershipError, SchemaClaim,
    SchemaOwner, State,
};
use crate::target::Target;

/// Databases that the server keeps for itself.
const SYSTEM: [&str; 4] = ["mysql", "information_schema", "performance_schema", "sys"];

fn refused(error: mysql_async::Error) -> SessionError {
    SessionError::from_mariadb(&error, CommitState::NotSent)
}

/// The database that `workload` uses: the target's, or one that is called as the workload is.
pub(crate) fn database_of(target: &Target, workload: WorkloadTables) -> &str {
    match target.database.as_str() {
        // As sysbench itself.
        "" => workload.schema().unwrap_or("sbtest"),
        name => name,
    }
}

/// Refuses who may not read `table`. The server shows nobody what he has no right to, so that something is not to be seen means
/// only to somebody who may read it that it is not there.
async fn require_sight(conn: &mut Conn, database: &str, table: &str) -> Result<(), SessionError> {
    let sql = format!("SELECT 1 FROM {}.{} LIMIT 0", quoted(database), quoted(table));
    match conn.query_drop(sql).await {
        Err(mysql_async::Error::Server(error)) if ABSENT.contains(&error.code) => Ok(()),
        answer => answer.map_err(refused),
    }
}

/// How long statements of clients that have gone may take, and how often they are looked for.
const SETTLE_LIMIT: Duration = Duration::from_secs(10);
const SETTLE_PAUSE: Duration = Duration::from_millis(50);

/// Lets statements of this user in `database` end. A client that was stopped does not wait for the one that it sent, and the
/// server goes on with it: a table that it creates would appear after all others are gone. One that takes longer is left
/// alone.
async fn settle(conn: &mut Conn, database: &str) -> Result<(), SessionError> {
    let sql = "SELECT count(*) FROM information_schema.processlist \
               WHERE db = ? AND command IN ('Query', 'Execute') AND id <> connection_id() \
                 AND user = substring_index(user(), '@', 1)";
    let deadline = Instant::now() + SETTLE_LIMIT;
    while conn.exec_first(sql, (database,)).await.map_err(refused)? != Some(0_u64)
        && Instant::now() < deadline
    {
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    Ok(())
}

/// Who made what is in `database`. `workload` has the database to itself.
///
/// # Errors
/// Also when the user may not see all of it.
async fn state(
    conn: &mut Conn,
    database: &str,
    workload: WorkloadTables,
) -> Result<State, SessionError> {
    let sql = "SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?";
    require_sight(conn, database, workload.marker()).await?;
    if conn.exec_first(sql, (database,)).await.map_err(refused)? != Some(1_u64) {
        return Ok(State::Absent);
    }
    // Not the tables themselves: one may be locked by another session, and a wait for it could not be
    // cancelled.
    Ok(contents(conn, database, workload).await?.state(workload))
}

impl SchemaOwner for MariadbConnection {
    fn with_database(target: &Target, workload: WorkloadTables) -> Target {
        target.with_database(database_of(target, workload))
    }

    fn table(_: WorkloadTables, name: &str) -> String {
        name.to_string()
    }

    async fn state(target: &Target, workload: WorkloadTables) -> Result<State, SessionError> {
        let mut conn = connect(&target.with_database("")).await?;
        state(&mut conn, database_of(target, workload), workload).await
    }

    async fn create(
        target: &Target,
        found: State,
        definition: &Definition<'_>,
    ) -> Result<(), RequestError> {
        let is_made = found == State::Absent;
        let database = quoted(database_of(target, definition.workload));
        let mut connection = MariadbConnection::connect(&target.with_database(""), 0).await?;
        if is_made {
            let sql = format!("CREATE DATABASE {database} {}", definition.database_options);
            connection.query(sql.as_bytes()).await?;
        }
        connection.query(format!("USE {database}").as_bytes()).await?;
        connection.run(definition.settings).await?;
        // Definitions commit one by one: the marker comes first, so that all of them can be dropped.
        let marker_row = definition.marker_row.replace("{made}", &format!(", {is_made}"));
        connection.run(&[definition.marker, &marker_row]).await?;
        for sql in &definition.statements {
            connection.query(sql.as_bytes()).await?;
        }
        Ok(())
    }

    async fn remove(
        target: &Target,
        workload: WorkloadTables,
        claim: SchemaClaim,
    ) -> Result<(), SessionError> {
        let database = database_of(target, workload);
        let mut conn = connect(&target.with_database("")).await?;
        let place = quoted(database);
        let sql = format!("SELECT made_database FROM {place}.{}", workload.marker());
        let was_made: bool = conn.query_first(sql).await.map_err(refused)?.unwrap_or(false);
        settle(&mut conn, database).await?;
        // References are between these tables alone.
        conn.query_drop("SET SESSION foreign_key_checks = 0").await.map_err(refused)?;
        let found = contents(&mut conn, database, workload).await?;
        let routines = workload.routines(Engine::Mariadb).iter();
        let routines = routines.map(|name| format!("DROP PROCEDURE IF EXISTS {place}.{name}"));
        let tables = found.tables.iter().map(|name| format!("DROP TABLE {place}.{}", quoted(name)));
        // The marker last, so that a removal that was cut short can be repeated. Triggers go with their tables.
        let marker = format!("DROP TABLE {place}.{}", workload.marker());
        for sql in routines.chain(tables).chain([marker]) {
            conn.query_drop(sql).await.map_err(refused)?;
        }
        release(&mut conn, database, was_made, claim).await
    }

    async fn state_of_numbered(
        target: &Target,
        workload: WorkloadTables,
        stem: &str,
    ) -> Result<(State, Option<String>), SessionError> {
        let database = database_of(target, workload);
        let mut conn = connect(&target.with_database("")).await?;
        require_sight(&mut conn, database, workload.marker()).await?;
        let sql = "SELECT (SELECT count(*) FROM information_schema.schemata WHERE schema_name = ?), \
                          (SELECT min(table_name) FROM information_schema.tables \
                            WHERE table_schema = ? AND table_name REGEXP ?), \
                          (SELECT count(*) FROM information_schema.tables \
                            WHERE table_schema = ? AND table_name = ?)";
        let pattern = format!("^{stem}[0-9]+$");
        let values = (database, database, &pattern, database, workload.marker());
        let found: Option<(u64, Option<String>, u64)> =
            conn.exec_first(sql, values).await.map_err(refused)?;
        Ok(match found {
            None | Some((0, ..)) => (State::Absent, None),
            Some((.., 1..)) => (State::Ours, None),
            Some((_, table @ Some(_), 0)) => (State::Foreign, table),
            Some((_, None, 0)) => (State::Free, None),
        })
    }

    async fn require_sight(
        target: &Target,
        workload: WorkloadTables,
        table: &str,
    ) -> Result<(), SessionError> {
        let mut conn = connect(&target.with_database("")).await?;
        require_sight(&mut conn, database_of(target, workload), table).await
    }

    async fn release_database(
        target: &Target,
        workload: WorkloadTables,
        was_made: bool,
    ) -> Result<(), SessionError> {
        let mut conn = connect(&target.with_database("")).await?;
        release(&mut conn, database_of(target, workload), was_made, SchemaClaim::Keep).await
    }
}

/// What a database holds under the names of a workload, and how much else.
#[derive(Default)]
struct Contents {
    tables: Vec<String>,
    others: u64,
    /// The first one that is no ordinary table, and what it is.
    odd: Option<(String, String)>,
    markers: Vec<String>,
    is_claimed: bool,
}

impl Contents {
    fn is_in_the_way(&self) -> bool {
        !self.tables.is_empty() || self.odd.is_some()
    }

    /// Whose they are.
    fn state(&self, workload: WorkloadTables) -> State {
        let is_empty = !self.is_in_the_way() && self.others == 0 && self.markers.is_empty();
        if self.markers.iter().any(|marker| marker == workload.marker()) {
            State::Ours
        } else if is_empty || (self.is_claimed && !self.is_in_the_way()) {
            State::Free
        } else {
            State::Foreign
        }
    }
}

async fn contents(
    conn: &mut Conn,
    database: &str,
    workload: WorkloadTables,
) -> Result<Contents, SessionError> {
    let rows: Vec<(String, String)> = conn
        .exec(
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = ? \
             ORDER BY table_name",
            (database,),
        )
        .await
        .map_err(refused)?;
    let ignores_case: Option<u64> =
        conn.query_first("SELECT @@lower_case_table_names").await.map_err(refused)?;
    let mut contents = Contents::default();
    for (name, kind) in rows {
        let compared =
            if ignores_case == Some(0) { name.clone() } else { name.to_ascii_lowercase() };
        if workload.has_table(&compared) {
            match kind.as_str() {
                "BASE TABLE" | "SYSTEM VERSIONED" => contents.tables.push(name),
                _ => {
                    contents.odd.get_or_insert((name, format!("a {}", kind.to_ascii_lowercase())));
                }
            }
        } else if WorkloadTables::ALL.iter().any(|other| other.marker() == compared) {
            contents.markers.push(compared);
        } else if compared == CLAIM {
            contents.is_claimed = true;
        } else {
            contents.others += 1;
        }
    }
    Ok(contents)
}

/// Removes the claim on a place whose other tables of ours are gone, and the database, if Underlay made it and nothing
/// is left in it.
async fn release(
    conn: &mut Conn,
    database: &str,
    made_database: bool,
    claim: SchemaClaim,
) -> Result<(), SessionError> {
    let quoted = quoted(database);
    if claim == SchemaClaim::Release {
        let sql = format!("DROP TABLE IF EXISTS {quoted}.{CLAIM}");
        conn.query_drop(sql).await.map_err(refused)?;
    }
    // Not if another program has created something there meanwhile.
    let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ?";
    let left: Option<u64> = conn.exec_first(sql, (database,)).await.map_err(refused)?;
    if made_database && left == Some(0) {
        conn.query_drop(format!("DROP DATABASE {quoted}")).await.map_err(refused)?;
    }
    Ok(())
}

/// See [`crate::schema_ownership::look`].
pub(crate) async fn look(
    target: &Target,
    workload: WorkloadTables,
) -> Result<Option<ForeignSchema>, OwnershipError> {
    let database = database_of(target, workload).to_string();
    if SYSTEM.iter().any(|system| system.eq_ignore_ascii_case(&database)) {
        return Err(OwnershipError::System(database));
    }
    let mut conn = connect(&target.with_database("")).await?;
    require_sight(&mut conn, &database, workload.marker()).await?;
    let found = contents(&mut conn, &database, workload).await?;
    // Sysbench shares its place: only what is in the way is foreign.
    let is_foreign = found.state(workload) == State::Foreign
        && (workload.schema().is_some() || found.is_in_the_way());
    if !is_foreign {
        return Ok(None);
    }
    let Contents { tables: names, others, markers, odd, .. } = found;
    if let Some(marker) = markers.into_iter().next() {
        return Err(OwnershipError::OtherWorkload { place: database, marker });
    }
    if let Some((name, kind)) = odd {
        return Err(OwnershipError::NotATable { place: database, name, kind });
    }
    let place = quoted(&database);
    for parent in &names {
        let sql = "SELECT concat(table_schema, '.', table_name), table_schema, table_name \
             FROM information_schema.key_column_usage \
             WHERE referenced_table_schema = ? AND referenced_table_name = ?";
        let children: Vec<(String, String, String)> =
            conn.exec(sql, (&database, parent)).await.map_err(refused)?;
        let stays = |schema: &str, name: &str| {
            schema != database || !names.iter().any(|going| going == name)
        };
        if let Some((child, ..)) =
            children.into_iter().find(|(_, schema, name)| stays(schema, name))
        {
            return Err(OwnershipError::Referenced {
                place: database,
                child,
                parent: parent.clone(),
            });
        }
    }
    // Those of tables that go go with them.
    let triggers: Vec<(String, String)> = conn
        .exec(
            "SELECT trigger_name, event_object_table FROM information_schema.triggers WHERE trigger_schema = ?",
            (&database,),
        )
        .await
        .map_err(refused)?;
    let in_the_way = triggers.into_iter().find(|(name, table)| {
        let own = workload.triggers(Engine::Mariadb);
        own.iter().any(|own| own.eq_ignore_ascii_case(name)) && !names.contains(table)
    });
    if let Some((name, table)) = in_the_way {
        let kind = format!("a trigger of `{table}`");
        return Err(OwnershipError::NotATable { place: database, name, kind });
    }
    let mut tables = Vec::new();
    for name in names {
        let sql = format!("SELECT count(*) FROM {place}.{}", quoted(&name));
        let rows: Option<u64> = conn.query_first(sql).await.map_err(refused)?;
        tables.push(ForeignTable { name, rows: rows.unwrap_or(0) });
    }
    let routines: Vec<String> = conn
        .exec(
            "SELECT concat(routine_type, ' ', routine_name) FROM information_schema.routines \
             WHERE routine_schema = ? ORDER BY 1",
            (&database,),
        )
        .await
        .map_err(refused)?;
    let is_own = |routine: &String| {
        let name = routine.split_once(' ').map_or("", |(_, name)| name);
        let own = workload.routines(Engine::Mariadb);
        own.iter().any(|own| own.eq_ignore_ascii_case(name))
    };
    Ok(Some(ForeignSchema {
        name: database.clone(),
        tables,
        routines: routines.into_iter().filter(is_own).collect(),
        others,
        place: database,
    }))
}

/// See [`crate::schema_ownership::clear`].
pub(crate) async fn clear(
    target: &Target,
    workload: WorkloadTables,
    found: &ForeignSchema,
    afterwards: Afterwards,
) -> Result<(), OwnershipError> {
    let mut conn = connect(&target.with_database("")).await?;
    let place = quoted(&found.place);
    // References are between these tables alone: [`look`] saw to it.
    conn.query_drop("SET SESSION foreign_key_checks = 0").await.map_err(refused)?;
    let mut statements = Vec::new();
    for table in &found.tables {
        statements.push(format!("DROP TABLE {place}.{}", quoted(&table.name)));
    }
    for routine in &found.routines {
        let (kind, name) = routine.split_once(' ').unwrap_or(("PROCEDURE", routine));
        statements.push(format!("DROP {kind} {place}.{}", quoted(name)));
    }
    if afterwards == Afterwards::Load && workload.schema().is_some() {
        // Last: if this is interrupted, the remaining tables count as foreign.
        statements.push(format!("CREATE TABLE IF NOT EXISTS {place}.{CLAIM} (nothing int)"));
    }
    for sql in statements {
        conn.query_drop(sql).await.map_err(refused)?;
    }
    Ok(())
}

//! What a user must be granted for a workload's steps, as statements for an administrator.
//!
//! Nothing is checked here: a server that refuses something says what. This lists what the whole command needs, so that the
//! user has to ask for rights only once. Rights on single tables are not distinguished.

use mysql_async::prelude::Queryable;

use crate::error::{CommitState, SessionError};
use crate::mariadb::connection::connect;
use crate::schema_ownership::WorkloadTables;
use crate::target::Target;
use crate::{Engine, mariadb};

/// What a command does with a workload's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Make them.
    pub load: bool,
    /// Run transactions on them, which is checked before and after.
    pub run: bool,
    /// Check them.
    pub check: bool,
    /// Remove them.
    pub drop: bool,
    /// Empty and fill sysbench's tables for bulk inserts.
    pub bulk: bool,
}

/// The statements, ended by semicolons.
///
/// # Errors
/// When the server does not say who its user is.
pub async fn grants(
    target: &Target,
    workload: WorkloadTables,
    steps: Steps,
) -> Result<Vec<String>, SessionError> {
    match target.engine {
        Engine::Postgresql => of_postgresql(target, workload, steps).await,
        Engine::Mariadb => of_mariadb(target, workload, steps).await,
    }
}

async fn of_mariadb(
    target: &Target,
    workload: WorkloadTables,
    steps: Steps,
) -> Result<Vec<String>, SessionError> {
    let refused = |error| SessionError::from_mariadb(&error, CommitState::NotSent);
    let mut conn = connect(&target.with_database("")).await?;
    let account: Option<String> =
        conn.query_first("SELECT CURRENT_USER()").await.map_err(refused)?;
    let account = account.unwrap_or_default();
    let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
    let literal = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    // In a database's name of a GRANT these stand for other characters.
    let database = mariadb::ownership::database_of(target, workload).replace('\\', "\\\\");
    let database = database.replace('_', "\\_").replace('%', "\\%");
    Ok(vec![format!(
        "GRANT {} ON {}.* TO {}@{};",
        mariadb_rights(workload, steps).join(", "),
        mariadb::connection::quoted(&database),
        literal(user),
        literal(host)
    )])
}

/// Rights on a database of MariaDB or MySQL.
fn mariadb_rights(workload: WorkloadTables, steps: Steps) -> Vec<&'static str> {
    let Steps { load, run, check, drop, bulk } = steps;
    let is_batch = workload == WorkloadTables::Batch;
    let has_routines = !workload.routines(Engine::Mariadb).is_empty();
    let has_triggers = !workload.triggers(Engine::Mariadb).is_empty();
    let makes = load || (is_batch && run);
    [
        ("SELECT", true),
        ("INSERT", load || run),
        ("UPDATE", load || run),
        ("DELETE", run && !is_batch),
        ("EXECUTE", run && has_routines),
        ("CREATE TEMPORARY TABLES", (run || check) && workload == WorkloadTables::Tpcc),
        ("CREATE", makes || bulk),
        ("INDEX", load),
        ("ALTER", load),
        ("CREATE ROUTINE", load && has_routines),
        ("TRIGGER", load && has_triggers),
        ("ALTER ROUTINE", drop && has_routines),
        // Emptying a table is dropping it to these servers.
        ("DROP", drop || bulk || (is_batch && run)),
    ]
    .into_iter()
    .filter_map(|(right, is_needed)| is_needed.then_some(right))
    .collect()
}

async fn of_postgresql(
    target: &Target,
    workload: WorkloadTables,
    steps: Steps,
) -> Result<Vec<String>, SessionError> {
    let refused = |error| SessionError::from_postgres(&error, CommitState::NotSent);
    let client = target.connect().await?;
    let (schema, is_there) = match workload.schema() {
        Some(schema) => {
            let sql = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
            (schema.to_string(), client.query_one(sql, &[&schema]).await.map_err(refused)?.get(0))
        }
        // Where its tables are, or where they would go: the first schema of the search path that is there.
        None => {
            let sql = "SELECT coalesce( \
                 (SELECT min(nspname::text) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace \
                   WHERE relname = 'underlay_sysbench' OR (relname = 'sbtest1' AND relkind = 'r')), \
                 current_schema()::text, 'public')";
            (client.query_one(sql, &[]).await.map_err(refused)?.get::<_, String>(0), true)
        }
    };
    let row = client
        .query_one(
            "SELECT quote_ident(current_user), quote_ident(current_database()), quote_ident($1), \
               (SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class \
                  JOIN pg_namespace n ON n.oid = relnamespace \
                 WHERE nspname = $1 AND relname = $2 AND relowner <> (SELECT oid FROM pg_roles WHERE rolname = current_user))",
            &[&schema, &workload.marker()],
        )
        .await
        .map_err(refused)?;
    let names = Names {
        user: row.get(0),
        database: row.get(1),
        schema: row.get(2),
        owner: row.get(3),
        schema_is_there: is_there,
    };
    Ok(postgresql_grants(&names, workload, steps))
}

/// Names as SQL writes them.
struct Names {
    user: String,
    database: String,
    schema: String,
    /// The owner of Underlay's tables, if it is another user.
    owner: Option<String>,
    schema_is_there: bool,
}

fn postgresql_grants(names: &Names, workload: WorkloadTables, steps: Steps) -> Vec<String> {
    let Names { user, database, schema, owner, schema_is_there } = names;
    let Steps { load, run, check, drop, bulk } = steps;
    let is_batch = workload == WorkloadTables::Batch;
    let removes = drop || (is_batch && run);
    let mut grants = Vec::new();
    // A user with the owner's rights needs no others on existing tables.
    if let Some(owner) = owner.as_ref().filter(|_| removes) {
        grants.push(format!("GRANT {owner} TO {user};"));
    } else if *schema_is_there {
        grants.push(format!("GRANT USAGE ON SCHEMA {schema} TO {user};"));
        if (run || check) && !load {
            let rights = if run { "SELECT, INSERT, UPDATE, DELETE" } else { "SELECT" };
            grants.push(format!("GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {user};"));
        }
        if run && !load {
            grants.push(format!("GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {user};"));
            if !workload.routines(Engine::Postgresql).is_empty() {
                grants
                    .push(format!("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {user};"));
            }
        }
        if load || bulk || (is_batch && run) {
            grants.push(format!("GRANT CREATE ON SCHEMA {schema} TO {user};"));
        }
    }
    let makes_schema = workload.schema().is_some() && (load || (is_batch && run));
    if makes_schema && (removes || !schema_is_there) {
        grants.push(format!("GRANT CREATE ON DATABASE {database} TO {user};"));
    }
    if (run || check) && workload == WorkloadTables::Tpcc {
        grants.push(format!("GRANT TEMPORARY ON DATABASE {database} TO {user};"));
    }
    grants
}

#[cfg(test)]
mod tests {
    use super::{Names, Steps, mariadb_rights, postgresql_grants};
    use crate::schema_ownership::WorkloadTables;

    fn names(owner: Option<&str>, schema_is_there: bool) -> Names {
        Names {
            user: "ann".to_string(),
            database: "shop".to_string(),
            schema: "tpcc".to_string(),
            owner: owner.map(str::to_string),
            schema_is_there,
        }
    }

    #[test]
    fn a_step_asks_for_no_more_than_it_needs() {
        let check = Steps { check: true, ..Steps::default() };
        assert_eq!(mariadb_rights(WorkloadTables::Dvdstore, check), ["SELECT"]);
        assert_eq!(
            mariadb_rights(WorkloadTables::Tpcc, check),
            ["SELECT", "CREATE TEMPORARY TABLES"]
        );
        let run = Steps { run: true, ..Steps::default() };
        assert_eq!(
            mariadb_rights(WorkloadTables::Sysbench, run),
            ["SELECT", "INSERT", "UPDATE", "DELETE"]
        );
        let drop = Steps { drop: true, ..Steps::default() };
        assert_eq!(mariadb_rights(WorkloadTables::Tpcc, drop), ["SELECT", "ALTER ROUTINE", "DROP"]);
    }

    #[test]
    fn only_an_owner_may_drop_on_postgresql() {
        let drop = Steps { drop: true, ..Steps::default() };
        let grants = postgresql_grants(&names(Some("adm"), true), WorkloadTables::Tpcc, drop);
        assert_eq!(grants, ["GRANT adm TO ann;"]);
        let check = Steps { check: true, ..Steps::default() };
        let grants = postgresql_grants(&names(Some("adm"), true), WorkloadTables::Dvdstore, check);
        assert_eq!(
            grants,
            [
                "GRANT USAGE ON SCHEMA tpcc TO ann;",
                "GRANT SELECT ON ALL TABLES IN SCHEMA tpcc TO ann;"
            ]
        );
        let load = Steps { load: true, ..Steps::default() };
        let grants = postgresql_grants(&names(None, false), WorkloadTables::Dvdstore, load);
        assert_eq!(grants, ["GRANT CREATE ON DATABASE shop TO ann;"]);
    }
}

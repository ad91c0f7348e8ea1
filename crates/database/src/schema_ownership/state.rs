//! States of the schema of a workload, the foreign objects in it, and the operations of an engine on
//! it.

use super::names::WorkloadTables;
use crate::connection::RequestError;
use crate::error::SessionError;
use crate::target::Target;

/// The table that marks a foreign schema that the user gave to a workload.
pub(crate) const CLAIM: &str = "underlay_claim";

/// Whether a place stays given to the workload when its tables are removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaClaim {
    /// Tables follow at once.
    Keep,
    /// The place is its owner's again.
    Release,
}

/// Who made what is in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is no such schema or database.
    Absent,
    /// It is there, and the workload may use it: an empty database of MariaDB, or one that the user gave.
    Free,
    /// Somebody else.
    Foreign,
    /// Underlay: the workload's marker is there.
    Ours,
}

/// Foreign objects in the schema of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignSchema {
    /// What the user repeats to give the place away: `database.schema` on PostgreSQL, the database on MariaDB.
    pub name: String,
    /// Tables of the workload's names, in order of their names.
    pub tables: Vec<ForeignTable>,
    /// Routines with the workload's names, as written in statements.
    pub routines: Vec<String>,
    /// How many other tables (views, sequences and the like counted too) are there. They stay.
    pub others: u64,
    /// The schema, or the database.
    pub(crate) place: String,
}

/// A table that Underlay did not create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignTable {
    /// Its name, without the place.
    pub name: String,
    /// Its rows, counted.
    pub rows: u64,
}

/// What becomes of a place that was cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// The workload's tables are loaded into it.
    Load,
    /// Nothing.
    Leave,
}

/// Why a place could not be looked at or cleared.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// The server keeps its own tables there.
    #[error("`{0}` belongs to the server itself: its tables are never replaced")]
    System(String),
    /// There is something of a workload's name that is no ordinary table.
    #[error("`{name}` in `{place}` is {kind}, not an ordinary table: remove it yourself")]
    NotATable {
        /// Schema or database.
        place: String,
        /// Its name.
        name: String,
        /// What it is, with an article.
        kind: String,
    },
    /// Underlay made tables of another workload there.
    #[error(
        "`{place}` holds tables of another workload that underlay created (`{marker}`): drop those first, or use another \
         database"
    )]
    OtherWorkload {
        /// Schema or database.
        place: String,
        /// The other workload's marker.
        marker: String,
    },
    /// A table that stays refers to one that would go.
    #[error(
        "`{child}` in `{place}` refers to `{parent}`, which would be removed: remove the reference first"
    )]
    Referenced {
        /// Schema or database.
        place: String,
        /// The table that stays.
        child: String,
        /// The table that would go.
        parent: String,
    },
    /// Something that stays depends on a table or routine that would go. Nothing was removed.
    #[error(
        "the tables to be replaced in `{place}` are in use: {why}; remove the dependent objects first"
    )]
    InUse {
        /// Schema or database.
        place: String,
        /// What the server said.
        why: String,
    },
    /// The database refused something.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// What a workload creates before its rows are loaded.
#[derive(Clone, Debug)]
pub(crate) struct Definition<'a> {
    /// Whose tables they are.
    pub workload: WorkloadTables,
    /// Settings of the session: routines remember under which they were created.
    pub settings: &'a [&'a str],
    /// Creates the marker.
    pub marker: &'a str,
    /// Its row. `{made}` stands for what the engine itself remembers there.
    pub marker_row: String,
    /// Options of a database that is created for them.
    pub database_options: &'static str,
    /// Creates tables and routines.
    pub statements: Vec<String>,
}

/// What an engine does with the schema of a workload that has one of its own.
pub(crate) trait SchemaOwner {
    /// The target with the database in which the workload's tables are.
    fn with_database(target: &Target, workload: WorkloadTables) -> Target;

    /// A table's name in statements.
    fn table(workload: WorkloadTables, name: &str) -> String;

    /// Who created what is there.
    ///
    /// # Errors
    /// Also when the user may not see all of it.
    async fn state(target: &Target, workload: WorkloadTables) -> Result<State, SessionError>;

    /// Creates what is defined in a schema in this state. An interrupted creation leaves nothing, or something that has the marker.
    async fn create(
        target: &Target,
        found: State,
        definition: &Definition<'_>,
    ) -> Result<(), RequestError>;

    /// Removes what the workload created, and the schema or the database where Underlay created that and nothing else is in it.
    async fn remove(
        target: &Target,
        workload: WorkloadTables,
        claim: SchemaClaim,
    ) -> Result<(), SessionError>;

    /// Who created the tables `<stem><number>` of a workload that has no schema of its own, and the first of them by name where it was
    /// somebody else. [`State::Absent`] where there is not even a database for them.
    async fn state_of_numbered(
        target: &Target,
        workload: WorkloadTables,
        stem: &str,
    ) -> Result<(State, Option<String>), SessionError>;

    /// Refuses a user who may not read `table`, where the server hides from him that it exists.
    async fn require_sight(
        target: &Target,
        workload: WorkloadTables,
        table: &str,
    ) -> Result<(), SessionError>;

    /// Drops the database of a workload's tables where Underlay created it and nothing is left in it.
    async fn release_database(
        target: &Target,
        workload: WorkloadTables,
        was_made: bool,
    ) -> Result<(), SessionError>;
}

/// Options of databases whose texts are compared byte by byte.
pub(crate) const BINARY_TEXT: &str = "CHARACTER SET latin1 COLLATE latin1_bin";

//! Where a workload's tables go, who made what is there, and making room for them where the user says so.
//!
//! A place is a schema of PostgreSQL or a database of MariaDB. What is in it without Underlay's marker is somebody
//! else's: it is neither loaded over nor dropped, unless the user repeats the place's name ([`look`], then [`clear`]).
//! Even then nothing goes but ordinary tables and routines that have the workload's own names: other tables stay as they
//! are, so do schema and database, and what depends on a table keeps it there.
//!
//! A place that was taken over in this way is not Underlay's. A table `underlay_claim` in it says so: loads may then
//! put tables beside what is there, and removals leave the rest alone.

mod names;

pub use names::WorkloadTables;
pub(crate) use names::tpcc_name;

use crate::error::SessionError;
use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// Says that the place is somebody else's and that the user gave it to a workload.
pub(crate) const CLAIM: &str = "underlay_claim";

/// Whether a place stays given to the workload when its tables are removed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceClaim {
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

/// What somebody else has where a workload's tables go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignPlace {
    /// What the user repeats to give the place away: `database.schema` on PostgreSQL, the database on MariaDB.
    pub name: String,
    /// Tables of the workload's names, in order of their names.
    pub tables: Vec<ForeignTable>,
    /// Routines of the workload's names, as the server is told of them.
    pub routines: Vec<String>,
    /// How many other tables (views, sequences and the like counted too) are there. They stay.
    pub others: u64,
    /// The schema, or the database.
    pub(crate) place: String,
}

/// A table that somebody else made.
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
pub enum PlaceError {
    /// The server keeps its own tables there.
    #[error("`{0}` belongs to the server itself: nothing there is replaced")]
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
        "`{child}` in `{place}` refers to `{parent}` and would stay behind without it: remove the reference yourself"
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
        "what would be replaced in `{place}` is in use: {why}; remove what depends on it yourself"
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

/// What somebody else has where the tables of `workload` go; nothing when there is nothing, or only what Underlay made.
/// Counts the rows of the tables that it names, which takes a while where they are large.
///
/// # Errors
/// When what is there can never be replaced: see [`PlaceError`].
pub async fn look(
    target: &Target,
    workload: WorkloadTables,
) -> Result<Option<ForeignPlace>, PlaceError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => postgres::place::look(&target.connect().await?, workload).await,
            Engine::Mariadb => mariadb::place::look(target, workload).await,
        }
    };
    target.stop.unless(work).await
}

/// Removes the tables and routines of `found`, which [`look`] returned, and nothing else. On PostgreSQL all of them or,
/// with an error, none; on MariaDB, which drops table by table, those before the one that an error is about are gone.
///
/// # Errors
/// When something depends on one of the tables, or the user may not drop it.
pub async fn clear(
    target: &Target,
    workload: WorkloadTables,
    found: &ForeignPlace,
    afterwards: Afterwards,
) -> Result<(), PlaceError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => {
                postgres::place::clear(&target.connect().await?, workload, found, afterwards).await
            }
            Engine::Mariadb => mariadb::place::clear(target, workload, found, afterwards).await,
        }
    };
    target.stop.unless(work).await
}

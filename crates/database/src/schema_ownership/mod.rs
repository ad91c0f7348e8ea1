//! Who created the tables in the schema of a workload, and their removal if the user confirms it.
//!
//! A workload's tables are in a schema of PostgreSQL or a database of MariaDB. What is in it without Underlay's marker was not created
//! by Underlay: it is neither overwritten nor dropped, unless the user repeats the schema's name ([`look`], then [`clear`]). Even then
//! only ordinary tables and routines with the workload's own names are dropped. Other tables, the schema and the database
//! stay, and whatever depends on a table prevents its removal.
//!
//! A schema that was taken over in this way is not Underlay's. A table `underlay_claim` in it says so: loads may then create
//! tables next to what is there, and removals leave the rest alone.

pub(crate) mod names;
pub(crate) mod state;

pub use names::WorkloadTables;
pub(crate) use names::tpcc_name;
pub use state::{Afterwards, ForeignSchema, ForeignTable, OwnershipError};

use crate::target::Target;
use crate::{Engine, mariadb, postgres};

/// Foreign objects in the schema of `workload`; `None` if there are none. Counts the rows of the tables that it names,
/// which takes a while where they are large.
///
/// # Errors
/// When what is there can never be replaced: see [`OwnershipError`].
pub async fn look(
    target: &Target,
    workload: WorkloadTables,
) -> Result<Option<ForeignSchema>, OwnershipError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => {
                postgres::ownership::look(&target.connect().await?, workload).await
            }
            Engine::Mariadb => mariadb::ownership::look(target, workload).await,
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
    found: &ForeignSchema,
    afterwards: Afterwards,
) -> Result<(), OwnershipError> {
    let work = async {
        match target.engine {
            Engine::Postgresql => {
                postgres::ownership::clear(&target.connect().await?, workload, found, afterwards)
                    .await
            }
            Engine::Mariadb => mariadb::ownership::clear(target, workload, found, afterwards).await,
        }
    };
    target.stop.unless(work).await
}

//! How a command ends when a workload's database fails: what the user can correct is bad input, the rest a failed run. Nothing
//! is tried again here.

use std::error::Error;

use underlay_database::SessionError;
use underlay_database::batch::BatchError;
use underlay_database::dvdstore::DvdStoreError;
use underlay_database::schema_ownership::OwnershipError;
use underlay_database::sysbench::SysbenchError;
use underlay_database::tpcc::TpccError;
use underlay_database::warehouse::WarehouseError;
use underlay_driver::DriveError;

use crate::stop::{Stop, chain};

/// An error of a workload's database, whose cause decides how a command ends.
pub trait Cause: Error + 'static {
    /// The session that failed, if one did.
    fn session(&self) -> Option<&SessionError>;
    /// Whether the host had no thread left.
    fn is_thread(&self) -> bool;
}

macro_rules! cause {
    ($($error:ident => $session:pat => $found:expr),* $(,)?) => {$(
        impl Cause for $error {
            fn session(&self) -> Option<&SessionError> {
                match self {
                    $session => $found,
                    _ => None,
                }
            }

            fn is_thread(&self) -> bool {
                matches!(self, $error::Thread(_))
            }
        }
    )*};
}

cause! {
    TpccError => TpccError::Session(error) => Some(error),
    SysbenchError => SysbenchError::Session(error) => Some(error),
    DvdStoreError => DvdStoreError::Session(error) => Some(error),
    BatchError => BatchError::Session(error) => Some(error),
    WarehouseError => WarehouseError::Session { error, .. } => Some(error),
}

impl Cause for OwnershipError {
    fn session(&self) -> Option<&SessionError> {
        match self {
            OwnershipError::Session(error) => Some(error),
            _ => None,
        }
    }

    fn is_thread(&self) -> bool {
        false
    }
}

impl Cause for SessionError {
    fn session(&self) -> Option<&SessionError> {
        Some(self)
    }

    fn is_thread(&self) -> bool {
        false
    }
}

/// What ends because of `error` while `doing` ("load the population"): what the user can correct is bad input, a database that
/// does not answer is not.
pub fn stopped<E: Cause>(doing: &str, error: E) -> Stop {
    match error.session() {
        Some(session) => session_failed(session, format!("could not {doing}: {}", chain(&error))),
        None if error.is_thread() => {
            Stop::run_failed(format!("could not {doing}: {}", chain(&error)))
        }
        None => Stop::bad_input(chain(&error)),
    }
}

/// An error of a session, which `text` says; remembers whether a right is lacking.
pub fn session_failed(error: &SessionError, text: String) -> Stop {
    if error.is_denial() { Stop::denied(text) } else { Stop::run_failed(text) }
}

/// Why the load of users did not start.
pub(super) fn not_started(error: DriveError) -> Stop {
    let text = chain(&error);
    match error {
        DriveError::Connect(error) => session_failed(&error, text),
        _ => Stop::run_failed(text),
    }
}

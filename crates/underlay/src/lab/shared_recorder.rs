//! The recorder of an execution, shared between the threads that write the record. What they write is theirs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use underlay_record::{ExecutionStatus, Recorder, WriteError};

/// The recorder, shared between threads.
#[derive(Clone)]
pub struct SharedRecorder(Arc<Mutex<Recorder>>);

impl SharedRecorder {
    /// Shares a recorder.
    pub fn new(recorder: Recorder) -> SharedRecorder {
        SharedRecorder(Arc::new(Mutex::new(recorder)))
    }

    /// Ends the execution. The record's other users must be gone.
    pub fn finish(self, status: ExecutionStatus) -> Result<(), WriteError> {
        match Arc::try_unwrap(self.0) {
            Ok(recorder) => {
                recorder.into_inner().unwrap_or_else(PoisonError::into_inner).finish(status)
            }
            // A thread still writes, which only a panic can cause: what is committed is safe, and the record
            // says that it was not finished.
            Err(_) => Ok(()),
        }
    }

    /// The recorder, for one or a few writes.
    pub fn lock(&self) -> MutexGuard<'_, Recorder> {
        // A panic in another writer leaves at most an uncommitted transaction, which the database
        // handles: what follows is still worth recording.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

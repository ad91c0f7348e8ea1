//! The root of an observed process tree, which the lab may replace after a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Name of a tree and the pid at its root.
#[derive(Debug)]
pub(crate) struct ProcessRoot {
    name: String,
    pid: AtomicU32,
}

impl ProcessRoot {
    pub(crate) fn new(name: &str, pid: u32) -> Arc<ProcessRoot> {
        Arc::new(ProcessRoot { name: name.to_string(), pid: AtomicU32::new(pid) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    pub(crate) fn set_pid(&self, pid: u32) {
        self.pid.store(pid, Ordering::Relaxed);
    }
}

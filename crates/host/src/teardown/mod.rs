//! The teardown stack: everything that must be removed, written down before it exists.
//!
//! A stack belongs to the process that created it. [`Teardown::unwind`] removes everything in the
//! reverse order of registration; dropping the last clone does the same. When the owner is killed
//! its stack stays in the [`StateDir`] and [`clean`] unwinds it.
//!
//! **Invariants:** a resource is registered, durably, before it is created. What exists already cannot be registered.
//! Removing is idempotent, and touches nothing but what was registered. The shared memory of a PostgreSQL server is
//! registered by its data directory, which the server writes into it. Other segments are registered once they exist,
//! because their server chooses the name: until then the registered process leads to them.
//!
//! It deliberately has no notion of what a resource is for, and never asks a server to end politely:
//! a caller that wants that does it before.

mod clean;
mod orphan;
mod removal;
mod remove;
mod resource;
mod stack_file;
mod unwinding;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::HostError;
use crate::loop_device;
use crate::mount_point;
use crate::real_path::real_path;
use crate::state_dir::StateDir;
use crate::unique_name::{file_name_part, unique};

pub use clean::{CleanReport, clean};
pub use orphan::Orphan;
pub(crate) use removal::{Removal, counted};
pub use resource::Resource;
pub use unwinding::Leftover;

use remove::remove;
use stack_file::{Header, StackFile};
use unwinding::unwind_pending;

/// Names one registered resource of one stack.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// A stack of this process. Clones share it.
#[derive(Clone, Debug)]
pub struct Teardown {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    stack: Mutex<Stack>,
}

#[derive(Debug)]
struct Stack {
    file: StackFile,
    pending: Vec<(u64, Resource)>,
    last_id: u64,
    torn_down: bool,
}

impl Teardown {
    /// Starts a stack owned by this process. `purpose` is shown by [`clean`].
    pub fn create(state: &StateDir, purpose: &str) -> Result<Teardown, HostError> {
        let name = format!("{}-{}-{:x}", file_name_part(purpose), std::process::id(), unique());
        let file = StackFile::create(&state.teardown_dir(), &name, &Header::own(purpose))?;
        let stack = Stack { file, pending: Vec::new(), last_id: 0, torn_down: false };
        Ok(Teardown { inner: Arc::new(Inner { stack: Mutex::new(stack) }) })
    }

    /// Writes down, durably, that the resource is about to be created. Refuses what exists already:
    /// it would be removed although it is not ours.
    pub fn register(&self, resource: Resource) -> Result<Ticket, HostError> {
        let resource = normalised(resource)?;
        refuse_existing(&resource)?;
        let mut stack = self.lock();
        if stack.torn_down {
            return Err(HostError::TornDown);
        }
        stack.last_id += 1;
        let id = stack.last_id;
        stack.file.add(id, &resource)?;
        stack.pending.push((id, resource));
        Ok(Ticket(id))
    }

    /// Registers a directory and creates it, with its missing parents left to the caller.
    pub fn create_directory(&self, path: &Path) -> Result<Ticket, HostError> {
        let ticket = self.register(Resource::Directory { path: path.to_path_buf() })?;
        match std::fs::create_dir(path) {
            Ok(()) => Ok(ticket),
            Err(error) => {
                self.forget(ticket);
                Err(HostError::file("create directory", path)(error))
            }
        }
    }

    /// Removes the resource now. On error it stays registered.
    pub fn release(&self, ticket: Ticket) -> Result<(), HostError> {
        let resource = {
            let stack = self.lock();
            stack.pending.iter().find(|(id, _)| *id == ticket.0).map(|(_, found)| found.clone())
        };
        // Not pending means that an unwind was faster.
        if let Some(resource) = resource {
            remove(&resource)?;
            self.forget(ticket);
        }
        Ok(())
    }

    /// Notes that the resource is gone already, or was never created.
    pub fn forget(&self, ticket: Ticket) {
        self.lock().note_gone(ticket.0);
    }

    /// Removes everything registered, last first, and the stack's file when all is gone. Nothing
    /// can be registered afterwards. May be called again, to try once more what was left over.
    pub fn unwind(&self) -> Vec<Leftover> {
        self.inner.unwind()
    }

    /// What is registered now, in the order of registration.
    pub fn registered(&self) -> Vec<Resource> {
        self.lock().pending.iter().map(|(_, resource)| resource.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Stack> {
        self.inner.lock()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Stack> {
        // A panic of another thread does not free us from removing what exists.
        self.stack.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn unwind(&self) -> Vec<Leftover> {
        let (pending, finished) = {
            let mut stack = self.lock();
            let finished = stack.torn_down && stack.pending.is_empty();
            stack.torn_down = true;
            (stack.pending.clone(), finished)
        };
        if finished {
            return Vec::new();
        }
        let leftovers = unwind_pending(pending, |id, _, _| {
            self.lock().note_gone(id);
            Ok(())
        });
        let stack = self.lock();
        if stack.pending.is_empty()
            && let Err(error) = stack.file.remove()
        {
            tracing::warn!(%error, "a finished teardown stack stays behind");
        }
        leftovers
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for leftover in self.unwind() {
            tracing::warn!(resource = %leftover.resource, reason = leftover.reason, "left behind");
        }
    }
}

impl Stack {
    fn note_gone(&mut self, id: u64) {
        let before = self.pending.len();
        self.pending.retain(|(pending, _)| *pending != id);
        if self.pending.len() < before {
            // Not fatal: a later cleanup finds the resource gone.
            if let Err(error) = self.file.gone(id) {
                tracing::warn!(%error, "could not note that a resource is gone");
            }
        }
    }
}

fn refuse_existing(resource: &Resource) -> Result<(), HostError> {
    match resource {
        Resource::Directory { path } | Resource::File { path } => refuse_path(path),
        Resource::Mount { target } if mount_point::is_mount_point(target)? => {
            Err(HostError::AlreadyMounted(target.clone()))
        }
        Resource::Loop { backing_file } if !loop_device::loop_devices(backing_file)?.is_empty() => {
            Err(HostError::AlreadyAttached(backing_file.clone()))
        }
        Resource::Cgroup { paths } => paths.iter().try_for_each(|path| refuse_path(path)),
        Resource::Mount { .. }
        | Resource::Loop { .. }
        | Resource::Process { .. }
        | Resource::SharedMemory { .. }
        | Resource::PostgresqlMemory { .. } => Ok(()),
    }
}

fn refuse_path(path: &Path) -> Result<(), HostError> {
    match path.symlink_metadata() {
        Ok(_) => Err(HostError::AlreadyExists(path.to_path_buf())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(HostError::file("inspect", path)(error)),
    }
}

/// Paths as the kernel names them: absolute, with symbolic links resolved.
fn normalised(resource: Resource) -> Result<Resource, HostError> {
    if let Some(path) = resource.paths().into_iter().find(|path| !path.is_absolute()) {
        return Err(HostError::NotAbsolute(path.to_path_buf()));
    }
    Ok(match resource {
        Resource::Directory { path } => Resource::Directory { path: real_path(&path) },
        Resource::File { path } => Resource::File { path: real_path(&path) },
        Resource::Mount { target } => Resource::Mount { target: real_path(&target) },
        Resource::Loop { backing_file } => {
            Resource::Loop { backing_file: real_path(&backing_file) }
        }
        other @ (Resource::Process { .. }
        | Resource::SharedMemory { .. }
        | Resource::PostgresqlMemory { .. }
        | Resource::Cgroup { .. }) => other,
    })
}

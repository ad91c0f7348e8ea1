//! Removing many resources in the reverse order of their registration.
//!
//! It deliberately knows no stack's file: its caller notes what is gone.

use super::removal::Removal;
use super::remove::remove;
use super::resource::Resource;
use crate::error::HostError;

/// A resource that could not be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub resource: Resource,
    /// Why it is still there.
    pub reason: String,
}

/// Removes resources, last first, in passes as long as something yields: killing a server further
/// down lets go of the mount further up. What cannot be removed is returned, first registered first.
///
/// Shared memory comes after all others: it was registered when its server was up, and is free when
/// its server is gone.
pub(super) fn unwind_pending(
    mut pending: Vec<(u64, Resource)>,
    mut gone: impl FnMut(u64, &Resource, Removal) -> Result<(), HostError>,
) -> Vec<Leftover> {
    let is_memory = |resource: &Resource| {
        matches!(resource, Resource::SharedMemory { .. } | Resource::PostgresqlMemory { .. })
    };
    pending.sort_by_key(|(_, resource)| !is_memory(resource));
    loop {
        let before = pending.len();
        let mut kept: Vec<(u64, Resource)> = Vec::new();
        let mut leftovers: Vec<Leftover> = Vec::new();
        while let Some((id, resource)) = pending.pop() {
            let removed = remove(&resource).and_then(|removal| gone(id, &resource, removal));
            if let Err(error) = removed {
                leftovers.push(Leftover { resource: resource.clone(), reason: error.to_string() });
                kept.push((id, resource));
            }
        }
        if kept.is_empty() || kept.len() == before {
            leftovers.reverse();
            return leftovers;
        }
        kept.reverse();
        pending = kept;
    }
}

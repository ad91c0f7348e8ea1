//! What happened in the cluster, in words, for the time line of a report.
//!
//! Bounded: when nobody asks, the oldest entries go.

use std::collections::{BTreeSet, VecDeque};

use crate::data_plane::Finding;
use underlay_core::Nanos;
use underlay_model::cluster::{
    Cluster, ComponentId, ComponentState, Notice, PriorFault, Reachability, VolumeId,
};

use crate::fault::DatastoreNotice;

/// Entries kept for the next reader.
const ENTRIES_MAX: usize = 10_000;
/// Of broken blocks only the first of an interval are named; the rest is counted.
const FINDINGS_NAMED: u64 = 20;

/// Lost blocks told apart; of further ones each time that one is wanted counts.
const LOST_KNOWN_MAX: usize = 100_000;

/// Entries since the last query.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: VecDeque<Entry>,
    findings: u64,
    /// Blocks restored from other members, and blocks that no member has, since the start.
    pub(crate) repaired: u64,
    pub(crate) lost: u64,
    /// Which blocks those are, as far as they are remembered.
    known_lost: BTreeSet<(ComponentId, u64)>,
    /// Whether states of components or reachability changed since it was last looked at.
    pub(crate) has_changed: bool,
}

#[derive(Debug)]
struct Entry {
    at: Nanos,
    kind: &'static str,
    text: String,
}

impl Journal {
    /// Notes what the cluster says.
    pub(crate) fn note(&mut self, at: Nanos, cluster: &Cluster, notice: &Notice) {
        self.has_changed = true;
        if let Some((kind, text)) = words(cluster, notice) {
            tracing::info!("{kind}: {text}");
            self.push(Entry { at, kind, text });
        }
    }

    /// Notes something about the datastore itself.
    pub(crate) fn say(&mut self, at: Nanos, kind: &'static str, text: String) {
        tracing::warn!("{kind}: {text}");
        self.has_changed = true;
        self.push(Entry { at, kind, text });
    }

    /// Notes what the data plane found.
    pub(crate) fn note_finding(&mut self, at: Nanos, finding: Finding) {
        let (component, offset_bytes, what) = match finding {
            Finding::Repaired { component, offset_bytes } => {
                self.repaired += 1;
                (
                    component,
                    offset_bytes,
                    "had a wrong checksum and was restored from another member",
                )
            }
            Finding::Lost { component, offset_bytes } => {
                if self.known_lost.contains(&(component, offset_bytes)) {
                    // Read again: still one block, and its readers count as errors of the volume.
                    return;
                }
                if self.known_lost.len() < LOST_KNOWN_MAX {
                    self.known_lost.insert((component, offset_bytes));
                }
                self.lost += 1;
                (component, offset_bytes, "is lost: no member has it")
            }
        };
        self.findings += 1;
        if self.findings <= FINDINGS_NAMED {
            let text = format!("the block at {offset_bytes} of component {component} {what}");
            tracing::warn!("{text}");
            self.push(Entry { at, kind: "data", text });
        }
    }

    /// Everything noted since the last call.
    pub(crate) fn take(&mut self, now: Nanos) -> Vec<DatastoreNotice> {
        let unnamed = self.findings.saturating_sub(FINDINGS_NAMED);
        if unnamed > 0 {
            let text = format!("{unnamed} more blocks had a wrong checksum");
            self.push(Entry { at: now, kind: "data", text });
        }
        self.findings = 0;
        let entries = self.entries.drain(..).map(|entry| DatastoreNotice {
            ago_ns: now.saturating_sub(entry.at).0,
            kind: entry.kind.to_string(),
            text: entry.text,
        });
        entries.collect()
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        debug_assert!(self.entries.len() <= ENTRIES_MAX, "a journal that nobody reads stays short");
    }
}

/// Kind and words of a notice; none for what is only of interest to the cluster itself.
fn words(cluster: &Cluster, notice: &Notice) -> Option<(&'static str, String)> {
    let name = |volume: &VolumeId| {
        cluster.volume_status(*volume).map_or_else(
            || format!("volume {}", volume.0),
            |status| format!("volume {}", status.name),
        )
    };
    Some(match notice {
        Notice::Component { component, volume, state } => {
            // Thousands of them change together; the interesting ones are those that stay.
            if *state == ComponentState::Resyncing {
                return None;
            }
            ("component", format!("component {component} of {} is {state}", name(volume)))
        }
        Notice::VolumeUnavailable { volume, reason } => {
            ("volume", format!("{} answers with I/O errors: {reason}", name(volume)))
        }
        Notice::UnflushedLost { volume, most } => {
            let name = name(volume);
            let text = format!(
                "a power cut destroyed writes to {name} that were not flushed: at most {most}"
            );
            ("volume", text)
        }
        Notice::VolumeAvailable { volume } => ("volume", format!("{} serves again", name(volume))),
        Notice::ResyncStarted { volume, reason, bytes } => {
            ("resync", format!("copying {bytes} of {} began ({})", name(volume), reason.as_str()))
        }
        Notice::ResyncFinished { volume, reason } => {
            ("resync", format!("copying of {} ended ({})", name(volume), reason.as_str()))
        }
        Notice::ResyncAbandoned { volume, reason } => {
            ("resync", format!("copying of {} was cancelled ({})", name(volume), reason.as_str()))
        }
        Notice::RepairBlocked { volume, reason } => {
            ("resync", format!("{} cannot be repaired: {reason}", name(volume)))
        }
        Notice::Host { host, reachability } => {
            let name = cluster.host_in_words(*host);
            let word = match reachability {
                Reachability::Reachable => "is reachable again",
                Reachability::Unreachable => "is not reachable",
            };
            ("host", format!("{name} {word}"))
        }
        Notice::DeviceFailed { device } => {
            ("device", format!("device {} failed", cluster.device_name(*device)))
        }
        Notice::DeviceReturned { device, was } => {
            ("device", format!("device {} {}", cluster.device_name(*device), mended(*was)))
        }
        Notice::Fault { description } => ("fault", description.clone()),
    })
}

/// What a device does again, by what was wrong with it.
const fn mended(was: PriorFault) -> &'static str {
    match was {
        PriorFault::None => "works normally, as before",
        PriorFault::OutOfUse => "is in use again",
        PriorFault::Slow => "has its normal speed again",
        PriorFault::Stuck => "answers again",
        PriorFault::Erroring => "answers without errors again",
    }
}

#[cfg(test)]
mod tests {
    use super::Journal;
    use crate::data_plane::Finding;
    use underlay_core::Nanos;
    use underlay_model::cluster::ComponentId;

    #[test]
    fn a_lost_block_is_one_however_often_it_is_read() {
        let mut journal = Journal::default();
        let lost = |block: u64| Finding::Lost { component: ComponentId(3), offset_bytes: block };
        for block in [0, 0, 4096, 0] {
            journal.note_finding(Nanos::ZERO, lost(block));
        }
        assert_eq!(journal.lost, 2);
        assert_eq!(journal.take(Nanos::ZERO).len(), 2);
    }
}

//! Cycles of backups and restores: which one is next, its progress, and the results.
//!
//! Not here: processors and volumes; [`crate::job_work`] puts the work on them.

use crate::core_state::JobVolume;
use crate::demand::DemandProfile;
use crate::job_spec::BackupSpec;
use crate::result::{JobOperation, JobResult, VolumeBytes};
use crate::spec::EngineSpec;
use crate::transfer::Transfer;
use underlay_core::Nanos;
use underlay_workload::backup::{BACKUP, RESTORE};

/// What is counted: megabytes.
const MEGABYTE: u64 = 1_000_000;

/// What a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The operation that was begun goes on.
    GoOn,
    /// Nothing for so long.
    Pause(Nanos),
    /// Nothing any more.
    End,
}

/// The job of a database.
pub(crate) struct Job {
    spec: BackupSpec,
    engine: EngineSpec,
    demands: DemandProfile,
    /// Of the database.
    bytes: u64,
    cycle: u32,
    kind: usize,
    began: Nanos,
    pub(crate) transfer: Option<Transfer>,
    /// Megabytes of the operation that were counted.
    counted: u64,
    result: JobResult,
}

impl Job {
    /// Over a database of so many bytes.
    pub(crate) fn new(
        spec: &BackupSpec,
        engine: &EngineSpec,
        demands: &DemandProfile,
        bytes: u64,
    ) -> Job {
        Job {
            spec: spec.clone(),
            engine: engine.clone(),
            demands: demands.clone(),
            bytes,
            cycle: 0,
            kind: BACKUP,
            began: Nanos::ZERO,
            transfer: None,
            counted: 0,
            result: JobResult::default(),
        }
    }

    /// The type of the operation in hand.
    pub(crate) fn kind(&self) -> usize {
        self.kind
    }

    /// The volume that the operation in hand reads, and the one that it writes.
    pub(crate) fn volumes(&self) -> (JobVolume, JobVolume) {
        match self.kind {
            BACKUP => (JobVolume::Data, JobVolume::Backup),
            _ => (JobVolume::Backup, JobVolume::Data),
        }
    }

    /// Where a volume's bytes begin: a restore goes beside the database.
    pub(crate) fn base(&self, volume: JobVolume) -> u64 {
        match (volume, self.kind) {
            (JobVolume::Data, RESTORE) => self.bytes,
            _ => 0,
        }
    }

    /// Begins the first operation, or the one that a pause has come before.
    pub(crate) fn begin_cycle(&mut self, now: Nanos) {
        self.cycle += 1;
        self.begin(now, BACKUP);
    }

    fn begin(&mut self, now: Nanos, kind: usize) {
        self.kind = kind;
        self.began = now;
        self.counted = 0;
        let cpu = self.demands.types[kind].cpu_per_unit;
        let form = match kind {
            BACKUP => self.engine.backup_form(),
            _ => self.engine.restore_form(),
        };
        // Files are read in their order: either database and archive have room together and stay in
        // memory, or each page leaves before it is read again. At first nothing is there.
        let has_room = 2 * self.bytes <= self.engine.page_cache().0;
        let is_cached = has_room && (kind != BACKUP || self.cycle > 1);
        let transfer = Transfer::new(self.bytes, form, cpu, is_cached);
        self.transfer = Some(match kind {
            BACKUP => transfer.limited(self.spec.bytes_per_second),
            _ => transfer,
        });
    }

    /// When the operation in hand began.
    pub(crate) fn began(&self) -> Nanos {
        self.began
    }

    /// The operation in hand is durable.
    pub(crate) fn end_operation(&mut self, now: Nanos) -> Next {
        let Some(transfer) = self.transfer.take() else { return Next::End };
        self.result.operations.push(JobOperation {
            kind: self.kind,
            cycle: self.cycle,
            stream: 0,
            begin: self.began,
            end: now,
            bytes: transfer.bytes(),
        });
        if self.kind == BACKUP && self.spec.restores {
            self.begin(now, RESTORE);
            return Next::GoOn;
        }
        if self.cycle < self.spec.cycles {
            return Next::Pause(self.spec.pause);
        }
        self.result.ended = Some(now);
        Next::End
    }

    /// Megabytes that the operation in hand has written since they were last asked for.
    pub(crate) fn take_megabytes(&mut self) -> u64 {
        let all = self.transfer.as_ref().map_or(0, Transfer::told) / MEGABYTE;
        let new = all.saturating_sub(self.counted);
        self.counted = all;
        new
    }

    /// Bytes that passed a volume.
    pub(crate) fn count(&mut self, volume: JobVolume, add: impl FnOnce(&mut VolumeBytes)) {
        add(&mut self.result.volumes[volume as usize]);
    }

    /// Its results since the last call.
    pub(crate) fn take(&mut self) -> JobResult {
        let ended = self.result.ended;
        let fresh = JobResult { ended, ..JobResult::default() };
        std::mem::replace(&mut self.result, fresh)
    }
}

//! A database that runs its job: it reads, computes and writes, while others use the same host and
//! storage.

use crate::core_state::{Core, JobIo, JobVolume, Purpose, Task};
use crate::database::Database;
use crate::job::Next;
use crate::spec::{VolumeUse, WorkloadSpec};
use crate::timers::Timer;
use crate::transfer::TransferWork;
use underlay_model::Request;
use underlay_model::target::Target;

impl Database {
    /// Begins the job, or goes on with it after a pause.
    pub(crate) fn begin_job_cycle<T: Target>(&mut self, core: &mut Core<T>) {
        if let Some(job) = &mut self.job {
            job.begin_cycle(core.now);
        }
        self.pump_job(core);
    }

    /// The job may copy more.
    pub(crate) fn go_on_with_job<T: Target>(&mut self, core: &mut Core<T>) {
        if let Some(transfer) = self.job.as_mut().and_then(|job| job.transfer.as_mut()) {
            transfer.waited();
        }
        self.pump_job(core);
    }

    /// A process of the job has used its processor.
    pub(crate) fn job_processed<T: Target>(
        &mut self,
        core: &mut Core<T>,
        process: u8,
        length: u32,
    ) {
        if let Some(transfer) = self.job.as_mut().and_then(|job| job.transfer.as_mut()) {
            transfer.processed(process, length);
        }
        self.pump_job(core);
    }

    /// An I/O request of the job is done.
    pub(crate) fn job_io_done<T: Target>(&mut self, core: &mut Core<T>, io: JobIo) {
        let Some(job) = &mut self.job else { return };
        match io {
            JobIo::Read { volume, length } => {
                job.count(volume, |bytes| bytes.read += u64::from(length));
                job.transfer.iter_mut().for_each(|transfer| transfer.read(length));
            }
            JobIo::Write { volume, length } => {
                job.count(volume, |bytes| bytes.written += u64::from(length));
                job.transfer.iter_mut().for_each(|transfer| transfer.written(length));
            }
            JobIo::Flush { .. } => match job.end_operation(core.now) {
                Next::GoOn => {}
                Next::Pause(length) => {
                    let timer = Timer::Job { database: self.number };
                    return core.timers.set(core.now + length, timer);
                }
                Next::End => return,
            },
        }
        self.pump_job(core);
    }

    fn job_place(&self, volume: JobVolume) -> VolumeUse {
        match (volume, &self.spec.workload) {
            (JobVolume::Backup, WorkloadSpec::Backup(backup)) => backup.volume,
            _ => self.spec.data,
        }
    }

    /// Does whatever can be done now.
    fn pump_job<T: Target>(&mut self, core: &mut Core<T>) {
        let database = self.number;
        loop {
            let Some(job) = &mut self.job else { return };
            let elapsed = core.now.saturating_sub(job.began());
            let Some(work) = job.transfer.as_mut().and_then(|transfer| transfer.next(elapsed))
            else {
                break;
            };
            let (from, to) = job.volumes();
            let (volume, request, io) = match work {
                TransferWork::Process { number, length, work } => {
                    let task = Task::Job { database, process: number, length };
                    core.cpus[self.spec.host].submit(core.now, work, task);
                    continue;
                }
                TransferWork::Wait { length } => {
                    core.timers.set(core.now + length, Timer::JobRate { database });
                    continue;
                }
                TransferWork::Read { offset, length } => {
                    let offset = job.base(from) + offset;
                    (from, Request::read(offset, length), JobIo::Read { volume: from, length })
                }
                TransferWork::Write { offset, length } => {
                    let offset = job.base(to) + offset;
                    (to, Request::write(offset, length), JobIo::Write { volume: to, length })
                }
                TransferWork::Flush => (to, Request::flush(), JobIo::Flush { volume: to }),
            };
            let place = self.job_place(volume);
            let offset_bytes = match io {
                JobIo::Flush { .. } => 0,
                _ => request.offset_bytes + place.offset.0,
            };
            let request = Request { offset_bytes, ..request };
            core.submit(self.path(), place.volume, request, Purpose::Job { database, io });
        }
        let Some(job) = &mut self.job else { return };
        let (kind, megabytes) = (job.kind(), job.take_megabytes());
        self.types[kind].committed += megabytes;
    }
}

//! What all databases of a simulation share: time, storage, processors, timers, and who is to be
//! woken.

use crate::cpu::Cpu;
use crate::page::PageId;
use crate::spec::HostSpec;
use crate::station::Station;
use crate::timers::Timers;
use std::collections::VecDeque;
use underlay_core::Nanos;
use underlay_model::Request;
use underlay_model::target::{Target, TargetFinished};

/// What a burst on a processor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A session.
    Session { database: u16, session: u32 },
    /// A process of a job, with that many bytes.
    Job { database: u16, process: u8, length: u32 },
    /// A worker of autovacuum.
    Analyze { database: u16 },
    /// A process of a warehouse's query.
    Query { database: u16, stream: u16 },
    /// Work that nothing waits for.
    Background,
}

/// A volume that a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobVolume {
    /// Of the tables.
    Data,
    /// Of backups.
    Backup,
}

/// What a job asks of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobIo {
    /// To read so many bytes.
    Read { volume: JobVolume, length: u32 },
    /// To write so many bytes.
    Write { volume: JobVolume, length: u32 },
    /// To flush.
    Flush { volume: JobVolume },
}

impl JobIo {
    /// Its place among the I/O stations of jobs: three for each volume.
    const fn index(self) -> usize {
        match self {
            JobIo::Read { volume, .. } => volume as usize * 3,
            JobIo::Write { volume, .. } => volume as usize * 3 + 1,
            JobIo::Flush { volume } => volume as usize * 3 + 2,
        }
    }
}

/// What an I/O request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A session reads a page.
    Read { database: u16, session: u32 },
    /// The log is written.
    LogWrite { database: u16 },
    /// The log is flushed.
    LogFlush { database: u16 },
    /// Pages are written in the background: this one, and perhaps those behind it.
    PageWrite { database: u16, first: PageId },
    /// The data volume is flushed: at the end of a checkpoint, after a batch of the doublewrite
    /// buffer, and after its pages.
    DataFlush { database: u16 },
    /// A batch is written to the doublewrite buffer.
    Doublewrite { database: u16 },
    /// Autovacuum reads a page.
    Analyze { database: u16 },
    /// The kernel reads ahead.
    ReadAhead { database: u16 },
    /// A job.
    Job { database: u16, io: JobIo },
    /// A warehouse's query reads so many bytes, for which so many pages waited.
    Query { database: u16, stream: u16, pages: u32, bytes: u32 },
}

impl Purpose {
    /// Its place among the I/O stations.
    pub(crate) const fn index(self) -> usize {
        match self {
            Purpose::Read { .. } => 0,
            Purpose::LogWrite { .. } => 1,
            Purpose::LogFlush { .. } => 2,
            Purpose::PageWrite { .. } => 3,
            Purpose::DataFlush { .. } => 4,
            Purpose::Doublewrite { .. } => 5,
            Purpose::Analyze { .. } => 6,
            Purpose::ReadAhead { .. } => 7,
            Purpose::Job { io, .. } => 8 + io.index(),
            // It is a job, too.
            Purpose::Query { bytes, .. } => {
                8 + JobIo::Read { volume: JobVolume::Data, length: bytes }.index()
            }
        }
    }

    pub(crate) const fn database(self) -> u16 {
        match self {
            Purpose::Read { database, .. }
            | Purpose::LogWrite { database }
            | Purpose::LogFlush { database }
            | Purpose::PageWrite { database, .. }
            | Purpose::DataFlush { database }
            | Purpose::Analyze { database }
            | Purpose::ReadAhead { database }
            | Purpose::Job { database, .. }
            | Purpose::Query { database, .. }
            | Purpose::Doublewrite { database } => database,
        }
    }
}

/// Kinds of [`Purpose`]: eight, and three for each volume of a job.
pub(crate) const PURPOSES: usize = 8 + 2 * 3;

/// For whom an I/O request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A database.
    Database(Purpose),
    /// A place in the queue of background work, which has stations of its own.
    Background { work: u16, place: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Io {
    asker: Asker,
    issued: Nanos,
}

/// What requests of a database, or of background work, use of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoPath {
    pub(crate) host: usize,
    pub(crate) cpu_per_io: Nanos,
}

/// The shared state.
pub(crate) struct Core<T> {
    pub(crate) now: Nanos,
    pub(crate) target: T,
    pub(crate) cpus: Vec<Cpu<Task>>,
    pub(crate) timers: Timers,
    /// Sessions that can go on: database, session.
    pub(crate) ready: VecDeque<(u16, u32)>,
    /// Per database and purpose.
    pub(crate) stations: Vec<[Station; PURPOSES]>,
    ios: Vec<Io>,
    free: Vec<u32>,
}

impl<T: Target> Core<T> {
    pub(crate) fn new(target: T, hosts: &[HostSpec], databases: usize) -> Core<T> {
        Core {
            now: Nanos::ZERO,
            target,
            cpus: hosts.iter().map(Cpu::new).collect(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            stations: vec![[Station::default(); PURPOSES]; databases],
            ios: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Asks the storage for something, and the host's processors for what that costs.
    pub(crate) fn submit(
        &mut self,
        path: IoPath,
        volume: usize,
        request: Request,
        purpose: Purpose,
    ) {
        self.stations[usize::from(purpose.database())][purpose.index()].arrive(self.now);
        self.ask(path, volume, request, Asker::Database(purpose));
    }

    /// The same for a place in the queue of background work.
    pub(crate) fn submit_background(
        &mut self,
        path: IoPath,
        volume: usize,
        request: Request,
        (work, place): (u16, u32),
    ) {
        self.ask(path, volume, request, Asker::Background { work, place });
    }

    fn ask(&mut self, path: IoPath, volume: usize, request: Request, asker: Asker) {
        let io = Io { asker, issued: self.now };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.ios[slot as usize] = io;
                slot
            }
            None => {
                self.ios.push(io);
                self.ios.len() as u32 - 1
            }
        };
        if path.cpu_per_io > Nanos::ZERO {
            self.cpus[path.host].submit(self.now, path.cpu_per_io, Task::Background);
        }
        self.target.submit(self.now, volume, &request, slot);
    }

    /// A request is done: for whom it was, and how long it took.
    pub(crate) fn complete(&mut self, done: &TargetFinished) -> (Asker, Nanos) {
        let io = self.ios[done.slot as usize];
        self.free.push(done.slot);
        if let Asker::Database(purpose) = io.asker {
            let station = &mut self.stations[usize::from(purpose.database())][purpose.index()];
            station.depart(self.now, io.issued);
        }
        (io.asker, self.now - io.issued)
    }
}

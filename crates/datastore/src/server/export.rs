//! What the FUSE reader, the completer and the control socket share: the two planes and the way answers
//! take through them.
//!
//! Lock order: a volume's undo log before the engine; never the other way round. Answers are sent while no
//! lock is held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use underlay_core::Nanos;
use underlay_model::{Operation, Request};

use super::buffers::BufferPool;
use super::clock::{Clock, Timer};
use super::engine::{Due, Engine, Submission};
use super::statistics::Answered;
use super::undo_log::Generation;
use super::volume::VolumeData;

/// Everything shared.
pub(crate) struct Export {
    pub(crate) clock: Clock,
    pub(crate) timer: Timer,
    pub(crate) volumes: Vec<ExportedVolume>,
    pub(crate) buffers: BufferPool,
    pub(crate) is_realtime: AtomicBool,
    engine: Mutex<Engine<Reply>>,
    /// Memory for the answers that a submitting thread sends itself, kept for reuse.
    inline: Mutex<Answers>,
}

/// Answers to be sent, and then to be counted.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) due: Vec<Due<Reply>>,
    pub(crate) answered: Vec<Answered>,
}

/// One volume as the export sees it.
pub(crate) struct ExportedVolume {
    pub(crate) name: String,
    pub(crate) data: VolumeData,
    /// Flushes are acknowledged and ignored.
    pub(crate) lies: bool,
}

/// The answer to a request, ready to be sent.
pub(crate) enum Reply {
    /// Data read, in a pooled buffer.
    Data { reply: ReplyData, buffer: Box<[u8]>, length: usize },
    /// A write of so many bytes.
    Written { reply: ReplyWrite, length: u32 },
    /// A flush; durable from its answer on.
    Flushed { reply: ReplyEmpty, volume: usize, generation: Option<Generation> },
    /// A discard.
    Done { reply: ReplyEmpty },
}

impl Export {
    pub(crate) fn new(
        clock: Clock,
        timer: Timer,
        volumes: Vec<ExportedVolume>,
        engine: Engine<Reply>,
    ) -> Export {
        Export {
            clock,
            timer,
            volumes,
            buffers: BufferPool::new(256),
            is_realtime: AtomicBool::new(true),
            engine: Mutex::new(engine),
            inline: Mutex::new(Answers::default()),
        }
    }

    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine<Reply>> {
        self.engine.lock().expect("no thread panics while it holds the engine")
    }

    /// Hands a request whose data has been moved to the model. Answers what is due already from the
    /// calling thread, which saves a thread switch where the device is faster than the host.
    pub(crate) fn submit(&self, arrived: Nanos, volume: usize, request: &Request, reply: Reply) {
        let mut engine = self.engine();
        let now = self.clock.now();
        match engine.submit(arrived, now, volume, request, reply) {
            Submission::Held => self.set_alarm(&mut engine),
            Submission::Due => {
                let mut inline = self.inline.lock().expect("sending answers does not panic");
                engine.take_due(now, &mut inline.due);
                self.set_alarm(&mut engine);
                drop(engine);
                self.answer(&mut inline);
                self.record(&inline.answered);
                inline.answered.clear();
            }
            Submission::Refused(reply) => {
                drop(engine);
                self.fail(reply);
            }
        }
    }

    /// Lets the timer expire for the next answer, if that is earlier than it would anyway.
    fn set_alarm(&self, engine: &mut Engine<Reply>) {
        let Some(next) = engine.next_answer() else { return };
        if engine.alarm.is_none_or(|alarm| next < alarm) {
            engine.alarm = Some(next);
            self.timer.set(next).expect("the timer is valid and so is the time");
        }
    }

    /// Sends what is due and notes it as answered.
    pub(crate) fn answer(&self, answers: &mut Answers) {
        for due in answers.due.drain(..) {
            self.send(due.reply);
            answers.answered.push(Answered { replied: self.clock.now(), ..due.answered });
        }
    }

    pub(crate) fn send(&self, reply: Reply) {
        match reply {
            Reply::Data { reply, buffer, length } => {
                reply.data(&buffer[..length]);
                self.buffers.give(buffer);
            }
            Reply::Written { reply, length } => reply.written(length),
            Reply::Flushed { reply, volume, generation } => {
                // Before the answer: once the client has it, a power cut must not take anything.
                if let Some(generation) = generation {
                    self.volumes[volume].data.flush_completes(generation);
                }
                reply.ok();
            }
            Reply::Done { reply } => reply.ok(),
        }
    }

    /// Answers with an I/O error.
    pub(crate) fn fail(&self, reply: Reply) {
        match reply {
            Reply::Data { reply, buffer, .. } => {
                reply.error(Errno::EIO);
                self.buffers.give(buffer);
            }
            Reply::Written { reply, .. } => reply.error(Errno::EIO),
            Reply::Flushed { reply, .. } | Reply::Done { reply } => reply.error(Errno::EIO),
        }
    }

    pub(crate) fn record(&self, answered: &[Answered]) {
        let mut engine = self.engine();
        let way = engine.path.way();
        for answered in answered {
            engine.statistics.record(answered, way);
        }
    }

    /// Counts a request that was answered at once, without a model.
    pub(crate) fn record_immediate(
        &self,
        volume: usize,
        operation: Operation,
        bytes: u32,
        arrived: Nanos,
    ) {
        let replied = self.clock.now();
        self.record(&[Answered { volume, operation, bytes, arrived, replied, modelled: None }]);
    }

    /// Counts a request whose data could not be moved.
    pub(crate) fn count_error(&self) {
        self.engine().statistics.errors += 1;
    }

    pub(crate) fn set_realtime(&self, granted: bool) {
        self.is_realtime.fetch_and(granted, Ordering::Relaxed);
    }
}

//! The ring through which kernel and server tell each other of requests and answers, and in which the server sleeps.
//!
//! Everything happens in `io_uring_enter` on the thread that made the ring: the kernel copies a request into its place there,
//! takes answers from theirs, and looks whether anything else wants attention. So one call hands over all answers, fetches all
//! requests that wait, and sleeps if there are none; and between calls nobody but the server touches a place.
//!
//! Which requests are served, and when they are answered, is not decided here.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::io::Errno;
use tracing::{error, info, warn};

use super::places::{Body, Places};
use super::protocol::{
    COMMIT_AND_FETCH, HEADER_BYTES, REGISTER, command, commit_of, cpus_of, places_per_queue,
};
use crate::server::fuse_protocol::answer_header;

const CPUS: &str = "/sys/devices/system/cpu/possible";
/// Commands on their way to the kernel at once; more are handed over in several calls.
const SUBMISSIONS_MAX: usize = 1024;
/// Set in what names a command: it watches a source. The rest is the source's number.
const SOURCE: u64 = 1 << 63;
/// Answers up to this length are copied when they leave, because the request that they answer may still be looked at.
const SHORT_BYTES: usize = 128;
/// Places that may keep the memory of a large request: the kernel takes the place that was answered last first, so that few
/// places carry nearly everything, and touching memory for the first time costs more than moving bytes.
const LARGE_MAX: usize = 24;
/// `IORING_ENTER_GETEVENTS`: do what has piled up for this thread.
const GET_EVENTS: u32 = 1;

// What commands end with when the mount does.
const NOT_CONNECTED: i32 = -libc::ENOTCONN;
const ABORTED: i32 = -libc::ECONNABORTED;
const CANCELLED: i32 = -libc::ECANCELED;

type Ring = IoUring<squeue::Entry128, cqueue::Entry>;

/// The ring of one mount.
pub(crate) struct FuseRing {
    ring: Ring,
    device: OwnedFd,
    places: Arc<Places>,
    per_queue: usize,
    /// By place.
    states: Vec<State>,
    /// Answers that have not left yet.
    answers: Vec<Answer>,
    /// Places whose payload takes more memory than it always keeps, oldest first.
    large: VecDeque<usize>,
    /// Sources that are watched, one bit each.
    watched: u64,
    /// Sources that want attention, one bit each.
    fired: u64,
    /// Places that the kernel did not take.
    refused: usize,
}

/// What a place is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The kernel has it, or will have it with the next call.
    Waiting,
    /// A request is being served; this names it when it is answered.
    Serving(u64),
    /// Nothing comes through it any more.
    Ended,
}

struct Answer {
    place: usize,
    unique: u64,
    errno: i32,
    body: AnswerBody,
}

enum AnswerBody {
    Short { length: usize, bytes: [u8; SHORT_BYTES] },
    InPlace(usize),
}

impl FuseRing {
    /// Makes the ring and its memory, for requests of up to `request_bytes`. Nothing is asked of the kernel's FUSE yet.
    pub(crate) fn new(device: BorrowedFd<'_>, request_bytes: usize) -> io::Result<FuseRing> {
        let list = fs::read_to_string(CPUS)?;
        let cpus = cpus_of(&list).ok_or_else(|| io::Error::other(format!("{CPUS}: {list}")))?;
        let per_queue = places_per_queue(cpus);
        let count = cpus * per_queue;
        let submissions = count.min(SUBMISSIONS_MAX).next_power_of_two() as u32;
        let mut builder: io_uring::Builder<squeue::Entry128, cqueue::Entry> = IoUring::builder();
        builder
            // Work for this thread is done when it asks, not whenever it enters or leaves the kernel.
            .setup_single_issuer()
            .setup_defer_taskrun()
            // Whether there is any is seen without asking.
            .setup_taskrun_flag()
            // One command that fails must not hold up the others.
            .setup_submit_all()
            .setup_cqsize((2 * count).next_power_of_two() as u32);
        let ring = builder.build(submissions)?;
        Ok(FuseRing {
            ring,
            device: device.try_clone_to_owned()?,
            places: Arc::new(Places::new(count, request_bytes)?),
            per_queue,
            states: vec![State::Waiting; count],
            answers: Vec::with_capacity(count),
            large: VecDeque::new(),
            watched: 0,
            fired: 0,
            refused: 0,
        })
    }

    /// Gives all places to the kernel, which uses the ring once every CPU's queue has one. The kernel must have been told that
    /// the ring comes.
    pub(crate) fn register(&mut self) -> io::Result<()> {
        for place in 0..self.places.count() {
            let vectors = self.places.vectors(place);
            let mut entry = self.command(REGISTER, place, 0);
            set_vectors(&mut entry, &vectors);
            // The kernel reads the vectors when it takes the command, so it must before they go.
            self.push(&entry)?;
            self.enter(0)?;
        }
        info!(places = self.places.count(), per_queue = self.per_queue, "FUSE over io_uring");
        Ok(())
    }

    /// Whether the kernel took all places.
    pub(crate) fn is_whole(&self) -> bool {
        self.refused == 0
    }

    /// The memory of the places, to be looked at while the ring is used otherwise.
    pub(crate) fn places(&self) -> Arc<Places> {
        Arc::clone(&self.places)
    }

    /// Appends the places in which requests have arrived. Asks the kernel only if it has something.
    pub(crate) fn arrived(&mut self, arrived: &mut VecDeque<usize>) -> io::Result<()> {
        if self.ring.submission().taskrun() {
            self.enter(0)?;
        }
        let FuseRing { ring, places, states, watched, fired, refused, .. } = self;
        for completion in ring.completion() {
            let name = completion.user_data();
            if name & SOURCE != 0 {
                let bit = 1 << (name & !SOURCE);
                *watched &= !bit;
                *fired |= bit;
                continue;
            }
            let place = name as usize;
            let Some(state) = states.get_mut(place) else { continue };
            match completion.result() {
                0.. => {
                    *state = State::Serving(commit_of(&places.header(place)));
                    arrived.push_back(place);
                }
                // The mount ends.
                NOT_CONNECTED | ABORTED | CANCELLED => *state = State::Ended,
                result => {
                    *state = State::Ended;
                    *refused += 1;
                    if *refused == 1 {
                        let error = io::Error::from_raw_os_error(-result);
                        warn!("the kernel does not take a place for requests: {error}");
                    }
                }
            }
        }
        self.trim();
        Ok(())
    }

    /// The header of a place whose request has arrived.
    pub(crate) fn header(&self, place: usize) -> [u8; HEADER_BYTES] {
        self.places.header(place)
    }

    /// Answers with a body; it leaves with the next [`FuseRing::submit`].
    pub(crate) fn answer(&mut self, place: usize, unique: u64, body: &[u8]) {
        let body = match body.len() {
            length @ ..=SHORT_BYTES => {
                let mut bytes = [0; SHORT_BYTES];
                bytes[..length].copy_from_slice(body);
                AnswerBody::Short { length, bytes }
            }
            length => {
                self.touched(place, length);
                // SAFETY: only reads and listings have answers that long; their requests come without data, so nobody looks
                // at the payload, and the request is not answered yet.
                unsafe { self.places.room(place, length) }.copy_from_slice(body);
                AnswerBody::InPlace(length)
            }
        };
        self.answers.push(Answer { place, unique, errno: 0, body });
    }

    /// Answers with so many bytes that were put into the place's payload.
    pub(crate) fn answer_in_place(&mut self, place: usize, unique: u64, length: usize) {
        self.answers.push(Answer { place, unique, errno: 0, body: AnswerBody::InPlace(length) });
    }

    /// Answers with an error.
    pub(crate) fn refuse(&mut self, place: usize, unique: u64, errno: Errno) {
        let errno = errno.raw_os_error();
        self.answers.push(Answer { place, unique, errno, body: AnswerBody::InPlace(0) });
    }

    /// How many answers wait to leave.
    pub(crate) fn unsent(&self) -> usize {
        self.answers.len()
    }

    /// Hands all answers to the kernel.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        if self.answers.is_empty() {
            return Ok(());
        }
        self.place_answers()?;
        self.enter(0)
    }

    /// Hands all answers to the kernel and sleeps until a request arrives or a source wants attention.
    pub(crate) fn wait(&mut self, sources: &[Option<BorrowedFd<'_>>]) -> io::Result<()> {
        for (number, source) in sources.iter().enumerate() {
            let Some(source) = source.filter(|_| self.watched & 1 << number == 0) else { continue };
            let events = libc::POLLIN as u32;
            let watch = opcode::PollAdd::new(types::Fd(source.as_raw_fd()), events).build();
            let entry: squeue::Entry128 = watch.user_data(SOURCE | number as u64).into();
            self.push(&entry)?;
            self.watched |= 1 << number;
        }
        self.place_answers()?;
        self.enter(1)
    }

    /// The sources that want attention, one bit each; they are watched again from the next sleep on.
    pub(crate) fn take_fired(&mut self) -> u64 {
        std::mem::take(&mut self.fired)
    }

    fn place_answers(&mut self) -> io::Result<()> {
        let mut answers = std::mem::take(&mut self.answers);
        for Answer { place, unique, errno, body } in answers.drain(..) {
            let State::Serving(commit) = self.states[place] else { continue };
            let (body, length) = match &body {
                AnswerBody::Short { length, bytes } => (Body::Bytes(&bytes[..*length]), *length),
                AnswerBody::InPlace(length) => (Body::InPlace(*length), *length),
            };
            let header = answer_header(unique, errno, length);
            // SAFETY: the request is not answered yet; requests are not looked at while answers leave.
            unsafe { self.places.answer(place, &header, body) };
            self.states[place] = State::Waiting;
            let entry = self.command(COMMIT_AND_FETCH, place, commit);
            self.push(&entry)?;
        }
        self.answers = answers;
        Ok(())
    }

    /// Notes that a request touches so many bytes of its place's payload.
    pub(crate) fn touched(&mut self, place: usize, bytes: usize) {
        if Places::is_large(bytes) && !self.large.contains(&place) {
            self.large.push_back(place);
        }
    }

    /// Gives back memory of large requests, of places that wait for their next one.
    fn trim(&mut self) {
        while self.large.len() > LARGE_MAX && self.ring.submission().is_empty() {
            let waits = |place: &usize| self.states[*place] == State::Waiting;
            let Some(oldest) = self.large.iter().position(waits) else { return };
            let Some(place) = self.large.remove(oldest) else { return };
            // SAFETY: the kernel has taken the place's answer, and copies the next request only when it is entered; had it done
            // so already, its completion would have been seen, for all that there are were looked at before.
            unsafe { self.places.trim(place) };
        }
    }

    fn command(&self, code: u32, place: usize, commit: u64) -> squeue::Entry128 {
        let queue = (place / self.per_queue) as u16;
        opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), code)
            .cmd(command(queue, commit))
            .build()
            .user_data(place as u64)
    }

    fn push(&mut self, entry: &squeue::Entry128) -> io::Result<()> {
        loop {
            // SAFETY: what the entry refers to (the device, sources, places) lives as long as the ring, or, for the vectors of
            // a place, until the call that hands it over.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.enter(0)?;
        }
    }

    /// Hands over what was pushed, has the kernel do what piled up, and waits until so many completions are there.
    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        let unsubmitted = self.ring.submission().len() as u32;
        // SAFETY: no argument is passed.
        let outcome = unsafe {
            self.ring.submitter().enter::<libc::sigset_t>(unsubmitted, wait_for, GET_EVENTS, None)
        };
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
            Err(error) => {
                error!("the ring does not work any more: {error}");
                Err(error)
            }
        }
    }
}

/// `UringCmd80` leaves out how many vectors its address names.
fn set_vectors(entry: &mut squeue::Entry128, vectors: &[libc::iovec; 2]) {
    /// Where `struct io_uring_sqe` has `addr` and `len`.
    const ADDRESS: usize = 16;
    const COUNT: usize = 24;
    let start = std::ptr::from_mut(entry).cast::<u8>();
    // SAFETY: an entry is a `struct io_uring_sqe` of 128 bytes, whose first half has had this layout since it exists; every bit
    // pattern is a valid one.
    unsafe {
        start.add(ADDRESS).cast::<u64>().write_unaligned(vectors.as_ptr() as u64);
        start.add(COUNT).cast::<u32>().write_unaligned(vectors.len() as u32);
    }
}

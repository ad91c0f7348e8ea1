//! Answers to the kernel's FUSE that are ready and have not left: they leave together, by another thread (`courier`) if there is more
//! to be served meanwhile.
//!
//! What an answer says does not change any more once it is here: bytes have moved, what it promises to be durable is, and it has
//! been counted. It is of what happened before, whatever happens next, a power cut included.

use std::io::IoSlice;
use std::ops::Range;

use rustix::io::Errno;

use super::fuse_device::FuseDevice;
use super::fuse_protocol::{ANSWER_HEADER_BYTES, answer_header};

/// Bodies up to this length need no memory of their own; most have none, or say how much was written.
const SHORT_BYTES: usize = 16;

/// Answers in the order in which they became ready.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    answers: Vec<Answer>,
    /// Buffers whose data has left, on their way back to the pool.
    spent: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Answer {
    header: [u8; ANSWER_HEADER_BYTES],
    body: Body,
}

#[derive(Debug)]
enum Body {
    Short {
        length: usize,
        bytes: [u8; SHORT_BYTES],
    },
    Long(Vec<u8>),
    /// A part of a buffer of the pool.
    Pooled(Vec<u8>, Range<usize>),
}

impl Outbox {
    /// Adds an answer that reports success. A copy is made of the body.
    pub(crate) fn answer(&mut self, unique: u64, body: &[u8]) {
        let mut bytes = [0; SHORT_BYTES];
        let kept = match bytes.get_mut(..body.len()) {
            Some(room) => {
                room.copy_from_slice(body);
                Body::Short { length: body.len(), bytes }
            }
            None => Body::Long(body.to_vec()),
        };
        self.answers.push(Answer { header: answer_header(unique, 0, body.len()), body: kept });
    }

    /// Adds an answer with data in a buffer of the pool.
    pub(crate) fn answer_data(&mut self, unique: u64, buffer: Vec<u8>, data: Range<usize>) {
        let header = answer_header(unique, 0, data.len());
        self.answers.push(Answer { header, body: Body::Pooled(buffer, data) });
    }

    /// Adds an answer that reports an error.
    pub(crate) fn refuse(&mut self, unique: u64, errno: Errno) {
        let header = answer_header(unique, errno.raw_os_error(), 0);
        let body = Body::Short { length: 0, bytes: [0; SHORT_BYTES] };
        self.answers.push(Answer { header, body });
    }

    /// How many answers there are.
    pub(crate) fn len(&self) -> usize {
        self.answers.len()
    }

    /// Sends everything. Returns how many answers there were.
    pub(crate) fn send(&mut self, device: &FuseDevice) -> usize {
        let count = self.answers.len();
        for Answer { header, body } in self.answers.drain(..) {
            let bytes = match &body {
                Body::Short { length, bytes } => &bytes[..*length],
                Body::Long(bytes) => bytes,
                Body::Pooled(buffer, data) => &buffer[data.clone()],
            };
            device.send(&[IoSlice::new(&header), IoSlice::new(bytes)]);
            if let Body::Pooled(buffer, _) = body {
                self.spent.push(buffer);
            }
        }
        count
    }

    /// Takes over the answers of another one, behind these.
    pub(crate) fn append_answers(&mut self, other: &mut Outbox) {
        self.answers.append(&mut other.answers);
    }

    /// Takes over the spent buffers of another one.
    pub(crate) fn append_spent(&mut self, other: &mut Outbox) {
        self.spent.append(&mut other.spent);
    }

    /// Hands out a buffer whose data has left.
    pub(crate) fn pop_spent(&mut self) -> Option<Vec<u8>> {
        self.spent.pop()
    }
}

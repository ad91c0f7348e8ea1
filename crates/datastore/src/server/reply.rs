//! An answer on its way: who gets it, and what it says.

use super::nbd::listener::ConnectionId;
use super::nbd::protocol::ReplyForm;
use super::undo_log::Generation;

/// Who asked, and how the answer finds its way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    /// The kernel, which knows the request by this number.
    Fuse {
        unique: u64,
    },
    Nbd {
        connection: ConnectionId,
        cookie: u64,
        form: ReplyForm,
        offset: u64,
        reply_bytes: u32,
    },
    /// Another request, of which this one is a part.
    Joint {
        joint: u64,
    },
}

/// The answer to a request, ready to be sent.
pub(crate) struct Reply {
    pub(super) client: Client,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// Data read, in a pooled buffer.
    Data { buffer: Box<[u8]>, length: usize },
    /// A part of a buffer that a cluster filled; empty until it is delivered.
    FromCluster { buffer: Vec<u8>, from: usize, length: usize },
    /// A write of so many bytes.
    Written { length: u32 },
    /// A write or a zeroing that is durable from its answer on.
    Durable { volume: usize, offset: u64, length: u32 },
    /// A flush; durable from its answer on.
    Flushed { volume: usize, generation: Option<Generation> },
    /// A discard.
    Done,
}

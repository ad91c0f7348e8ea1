//! The client of a request, and how its reply is sent.

use crate::nbd::listener::ConnectionId;
use crate::nbd::protocol::ReplyForm;

/// Who is answered, and in which form. Means nothing to a back end.
#[derive(Clone, Copy, Debug)]
pub struct Client(pub(crate) Asker);

/// Who asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker {
    /// The kernel, which knows the request by this number.
    Fuse { unique: u64, body: AnswerBody },
    /// A client on a socket.
    Nbd {
        connection: ConnectionId,
        cookie: u64,
        form: ReplyForm,
        offset: u64,
        /// Of a read, else 0.
        reply_bytes: u32,
    },
}

/// What an answer to the kernel says besides success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerBody {
    /// The data read.
    Data,
    /// How many bytes were written.
    Written {
        bytes: u32,
    },
    Nothing,
}

//! The NBD protocol's messages after the handshake: parsing requests, laying out replies.
//!
//! Written from the public description of the protocol (`doc/proto.md` of the NBD project). All numbers are
//! big-endian. Nothing here does I/O; what does not parse is an error, never a panic.
//!
//! ```text
//! request:          25609513 flags:u16 type:u16 cookie:u64 offset:u64 length:u32 (data of a write)
//! simple reply:     67446698 error:u32 cookie:u64 (data of a read)
//! structured chunk: 668e33ef flags:u16 type:u16 cookie:u64 length:u32 payload
//! block status:     context:u32 (length:u32 flags:u32)...
//! ```
//!
//! What is deliberately not here: block status of other contexts than `base:allocation`, resizing, extended headers, TLS.

use crate::back_end::Extent;

/// Largest data of one request. What the protocol asks servers to accept unless they announce less.
pub(crate) const MAX_PAYLOAD_BYTES: u32 = 32 << 20;
/// Bytes of a request before its data.
pub(crate) const REQUEST_BYTES: usize = 28;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

const FLAG_FUA: u16 = 1 << 0;
const FLAG_NO_HOLE: u16 = 1 << 1;
const FLAG_DO_NOT_FRAGMENT: u16 = 1 << 2;
const FLAG_ONE_EXTENT: u16 = 1 << 3;

const CHUNK_DONE: u16 = 1 << 0;
const CHUNK_OFFSET_DATA: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = (1 << 15) + 1;

/// What a hole is in `base:allocation`: no space behind it, and it reads as zeros.
const STATE_HOLE_ZERO: u32 = 1 << 0 | 1 << 1;
/// The server's name of the context `base:allocation`, the only one.
pub(super) const ALLOCATION_CONTEXT: u32 = 1;
/// Extents in one reply at most; a client asks again from where they end.
pub(crate) const MAX_EXTENTS: usize = 4096;

/// Why a client's bytes cannot be gone on with. The connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("a message begins with the unknown number {0:#x}")]
    BadMagic(u64),
    #[error("a write of {0} bytes is longer than the announced maximum")]
    WriteTooLong(u32),
    #[error("the client sets the unknown handshake flags {0:#x}")]
    BadClientFlags(u32),
    #[error("an option of {0} bytes is longer than the protocol allows")]
    OptionTooLong(u32),
    #[error(
        "the export does not exist, and the client used NBD_OPT_EXPORT_NAME, which has no error reply"
    )]
    UnknownExport,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes(Holes),
    BlockStatus(Extents),
    /// A type, or a flag, that was not announced.
    Unsupported,
}

/// Whether zeroed ranges may lose their space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holes {
    Allowed,
    Forbidden,
}

/// How many extents a client wants to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extents {
    One,
    Several,
}

/// One request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NbdRequest<'a> {
    pub(crate) kind: Kind,
    /// Done only when it is durable.
    pub(crate) force_unit_access: bool,
    /// Names the request in its reply.
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    /// Of a write, else empty.
    pub(crate) data: &'a [u8],
}

/// What is at the beginning of a client's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// A request that takes so many bytes.
    Request(NbdRequest<'a>, usize),
    /// Not all of it: so many bytes are needed.
    Incomplete(usize),
}

/// The bytes at `at`, if that many are there.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Understands the request at the beginning of `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed<'_>, ProtocolError> {
    let incomplete = Ok(Parsed::Incomplete(REQUEST_BYTES));
    let Some(magic) = array(bytes, 0).map(u32::from_be_bytes) else { return incomplete };
    if magic != REQUEST_MAGIC {
        return Err(ProtocolError::BadMagic(u64::from(magic)));
    }
    let fields = (array(bytes, 4), array(bytes, 6), array(bytes, 8), array(bytes, 16));
    let (Some(flags), Some(kind), Some(cookie), Some(offset)) = fields else { return incomplete };
    let Some(length) = array(bytes, 24).map(u32::from_be_bytes) else { return incomplete };
    let (flags, kind) = (u16::from_be_bytes(flags), u16::from_be_bytes(kind));
    let (kind, data_bytes) = match kind {
        0 => (Kind::Read, 0),
        1 if length > MAX_PAYLOAD_BYTES => return Err(ProtocolError::WriteTooLong(length)),
        1 => (Kind::Write, length as usize),
        2 => (Kind::Disconnect, 0),
        3 => (Kind::Flush, 0),
        4 => (Kind::Trim, 0),
        6 if flags & FLAG_NO_HOLE != 0 => (Kind::WriteZeroes(Holes::Forbidden), 0),
        6 => (Kind::WriteZeroes(Holes::Allowed), 0),
        7 if flags & FLAG_ONE_EXTENT != 0 => (Kind::BlockStatus(Extents::One), 0),
        7 => (Kind::BlockStatus(Extents::Several), 0),
        _ => (Kind::Unsupported, 0),
    };
    let total = REQUEST_BYTES + data_bytes;
    let Some(data) = bytes.get(REQUEST_BYTES..total) else {
        return Ok(Parsed::Incomplete(total));
    };
    let known = match kind {
        Kind::Read => FLAG_FUA | FLAG_DO_NOT_FRAGMENT,
        Kind::WriteZeroes(_) => FLAG_FUA | FLAG_NO_HOLE,
        Kind::BlockStatus(_) => FLAG_FUA | FLAG_ONE_EXTENT,
        _ => FLAG_FUA,
    };
    let request = NbdRequest {
        kind: if flags & !known == 0 { kind } else { Kind::Unsupported },
        force_unit_access: flags & FLAG_FUA != 0,
        cookie: u64::from_be_bytes(cookie),
        offset: u64::from_be_bytes(offset),
        length,
        data,
    };
    Ok(Parsed::Request(request, total))
}

/// The error values of the protocol that this server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NbdError {
    /// The data could not be moved, or the device failed.
    Io,
    /// The request makes no sense.
    Invalid,
    /// A write beyond the end, or no space behind the volume.
    NoSpace,
    /// A read longer than what was announced.
    Overflow,
    /// The volume is going away.
    Shutdown,
}

impl NbdError {
    const fn code(self) -> u32 {
        match self {
            NbdError::Io => 5,
            NbdError::Invalid => 22,
            NbdError::NoSpace => 28,
            NbdError::Overflow => 75,
            NbdError::Shutdown => 108,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            NbdError::Io => "the device failed or has no power",
            NbdError::Invalid => "the volume does not support this request",
            NbdError::NoSpace => "the request reaches beyond the end of the volume",
            NbdError::Overflow => "the read is longer than the announced maximum",
            NbdError::Shutdown => "the volume is being removed",
        }
    }
}

/// In which form replies go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    Simple,
    Structured,
}

/// What precedes the data of a successful read of `length` bytes at `offset`.
pub(crate) fn data_header(form: ReplyForm, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    match form {
        ReplyForm::Simple => simple(0, cookie),
        ReplyForm::Structured => {
            let mut header = chunk(CHUNK_OFFSET_DATA, cookie, length + 8);
            header.extend_from_slice(&offset.to_be_bytes());
            header
        }
    }
}

/// The reply to a question for the allocation, with one extent at least. Always structured.
pub(crate) fn block_status(cookie: u64, extents: &[Extent]) -> Vec<u8> {
    let mut reply = chunk(CHUNK_BLOCK_STATUS, cookie, 4 + 8 * extents.len() as u32);
    reply.extend_from_slice(&ALLOCATION_CONTEXT.to_be_bytes());
    for extent in extents {
        let state = if extent.holds_data { 0 } else { STATE_HOLE_ZERO };
        reply.extend_from_slice(&extent.length_bytes.to_be_bytes());
        reply.extend_from_slice(&state.to_be_bytes());
    }
    reply
}

/// The reply to a request, not a read, that succeeded. Simple in both forms, as the protocol allows.
pub(crate) fn done(cookie: u64) -> Vec<u8> {
    simple(0, cookie)
}

/// The reply to a request that failed.
pub(crate) fn failed(form: ReplyForm, cookie: u64, error: NbdError) -> Vec<u8> {
    match form {
        ReplyForm::Simple => simple(error.code(), cookie),
        ReplyForm::Structured => {
            let text = error.text();
            let mut reply = chunk(CHUNK_ERROR, cookie, 6 + text.len() as u32);
            reply.extend_from_slice(&error.code().to_be_bytes());
            reply.extend_from_slice(&(text.len() as u16).to_be_bytes());
            reply.extend_from_slice(text.as_bytes());
            reply
        }
    }
}

fn simple(error: u32, cookie: u64) -> Vec<u8> {
    let mut reply = Vec::with_capacity(16);
    reply.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply.extend_from_slice(&error.to_be_bytes());
    reply.extend_from_slice(&cookie.to_be_bytes());
    reply
}

/// The header of the only chunk of a reply.
fn chunk(kind: u16, cookie: u64, payload_bytes: u32) -> Vec<u8> {
    let mut header = Vec::with_capacity(28);
    header.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    header.extend_from_slice(&CHUNK_DONE.to_be_bytes());
    header.extend_from_slice(&kind.to_be_bytes());
    header.extend_from_slice(&cookie.to_be_bytes());
    header.extend_from_slice(&payload_bytes.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::{
        Extent, Extents, Holes, Kind, NbdError, NbdRequest, Parsed, ProtocolError, ReplyForm,
        block_status, data_header, failed, parse,
    };
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn request(flags: u16, kind: u16, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = 0x2560_9513u32.to_be_bytes().to_vec();
        bytes.extend_from_slice(&flags.to_be_bytes());
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&7u64.to_be_bytes());
        bytes.extend_from_slice(&offset.to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    fn kind_of(flags: u16, kind: u16) -> Kind {
        match parse(&request(flags, kind, 0, 0, &[])).unwrap() {
            Parsed::Request(request, 28) => request.kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn requests_are_understood() {
        let bytes = request(1, 1, 4096, 3, b"abcrest");
        let expected = NbdRequest {
            kind: Kind::Write,
            force_unit_access: true,
            cookie: 7,
            offset: 4096,
            length: 3,
            data: b"abc",
        };
        assert_eq!(parse(&bytes), Ok(Parsed::Request(expected, 31)));
        let kinds = [Kind::Read, Kind::Write, Kind::Disconnect, Kind::Flush, Kind::Trim];
        for (number, kind) in kinds.into_iter().enumerate() {
            assert_eq!(kind_of(0, number as u16), kind);
        }
        assert_eq!(kind_of(0, 6), Kind::WriteZeroes(Holes::Allowed));
        assert_eq!(kind_of(2, 6), Kind::WriteZeroes(Holes::Forbidden));
        assert_eq!(kind_of(0, 7), Kind::BlockStatus(Extents::Several));
        assert_eq!(kind_of(8, 7), Kind::BlockStatus(Extents::One));
    }

    #[test]
    fn what_was_not_announced_is_unsupported() {
        // An unknown type, fast zero, "don't fragment" on a write, "one extent" on a read.
        for (flags, kind) in [(0, 99), (1 << 4, 6), (1 << 2, 1), (1 << 3, 0)] {
            assert_eq!(kind_of(flags, kind), Kind::Unsupported);
        }
        let long = request(0, 1, 0, u32::MAX, &[]);
        assert_eq!(parse(&long), Err(ProtocolError::WriteTooLong(u32::MAX)));
        assert_eq!(parse(&[0; 4]), Err(ProtocolError::BadMagic(0)));
    }

    #[test]
    fn replies_have_the_layout_of_the_protocol() {
        let header = data_header(ReplyForm::Structured, 7, 4096, 512);
        assert_eq!(header.len(), 28);
        assert_eq!(header[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1]);
        assert_eq!(header[16..20], 520u32.to_be_bytes());
        assert_eq!(header[20..], 4096u64.to_be_bytes());
        let simple = failed(ReplyForm::Simple, 7, NbdError::Io);
        assert_eq!(simple[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5]);
        let error = failed(ReplyForm::Structured, 7, NbdError::NoSpace);
        let payload = u32::from_be_bytes(error[16..20].try_into().unwrap()) as usize;
        assert_eq!(error.len(), 20 + payload);
        let text = u16::from_be_bytes(error[24..26].try_into().unwrap()) as usize;
        assert_eq!(payload, 6 + text);
        let extents = [(4096, true), (8192, false)]
            .map(|(length_bytes, holds_data)| Extent { length_bytes, holds_data });
        let status = block_status(7, &extents);
        assert_eq!(status[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5]);
        assert_eq!(status[16..24], [0, 0, 0, 20, 0, 0, 0, 1]);
        assert_eq!(status[24..], [0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 3]);
    }

    proptest! {
        /// Whatever comes: no panic, and a prefix of a request asks for more, never for less than is there.
        #[test]
        fn prefixes_are_incomplete(
            flags in any::<u16>(), kind in 0..9u16, offset in any::<u64>(), length in 0..5000u32,
            cut in any::<proptest::sample::Index>(),
        ) {
            let data = if kind == 1 { vec![9; length as usize] } else { Vec::new() };
            let bytes = request(flags, kind, offset, length, &data);
            let Parsed::Request(found, used) = parse(&bytes).unwrap() else { panic!("complete") };
            prop_assert_eq!(used, bytes.len());
            prop_assert_eq!((found.offset, found.data), (offset, &data[..]));
            let cut = cut.index(bytes.len());
            let Parsed::Incomplete(needed) = parse(&bytes[..cut]).unwrap() else { panic!("cut") };
            prop_assert!(needed > cut && needed <= bytes.len());
        }

        #[test]
        fn nothing_makes_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse(&bytes);
        }
    }
}

//! The part of the FUSE protocol that a directory of fixed-size files needs: parsing requests, laying out answers.
//!
//! Written from the kernel's public header `include/uapi/linux/fuse.h`, protocol 7.31. Numbers are in the
//! machine's byte order. Nothing here does I/O; what does not parse is an error, never a panic.
//!
//! ```text
//! request: length u32, opcode u32, unique u64, inode u64, uid u32, gid u32, pid u32, padding u32, body
//! answer:  length u32, error i32 (negative errno), unique u64, body
//! ```

use super::layout::{Layout, PAGE_BYTES};
use super::negotiation::Offer;

/// Size of the header of a request.
pub(crate) const REQUEST_HEADER_BYTES: usize = 40;
/// Size of the header and the fixed part of a write; its data follows.
pub(crate) const WRITE_OVERHEAD_BYTES: usize = REQUEST_HEADER_BYTES + 40;
/// Size of the header of an answer.
pub(crate) const ANSWER_HEADER_BYTES: usize = 16;
/// The directory that holds the files.
pub(crate) const ROOT_INODE: u64 = 1;

const OPEN_DIRECT_IO: u32 = 1 << 0;
const OPEN_NOFLUSH: u32 = 1 << 5;
const OPEN_PARALLEL_DIRECT_WRITES: u32 = 1 << 6;

/// Attributes of an inode never change behind the kernel's back; seconds.
const VALID_SECONDS: u64 = 86_400;

/// One request of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FuseRequest<'a> {
    /// Names the request in its answer.
    pub(crate) unique: u64,
    pub(crate) inode: u64,
    pub(crate) body: Body<'a>,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    Init(Offer),
    Lookup {
        name: &'a [u8],
    },
    GetAttributes,
    Open,
    OpenDirectory,
    Release,
    ReadDirectory {
        offset: u64,
        size: u32,
    },
    Read {
        offset: u64,
        size: u32,
    },
    Write {
        offset: u64,
        data: &'a [u8],
    },
    Synchronise,
    Allocate {
        offset: u64,
        length: u64,
        mode: u32,
    },
    FileSystemStatus,
    /// Needs no answer.
    Forget,
    /// The file system is going away; needs no answer.
    Destroy,
    /// Anything else.
    Unsupported,
}

/// Why bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("a request of {0} bytes is cut off")]
    Truncated(usize),
    #[error("a request says it has {said} bytes and has {found}")]
    WrongLength { said: u32, found: usize },
}

/// Reads fields one after the other.
struct Fields<'a> {
    bytes: &'a [u8],
    total: usize,
}

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let (head, rest) =
            self.bytes.split_first_chunk::<N>().ok_or(ProtocolError::Truncated(self.total))?;
        self.bytes = rest;
        Ok(*head)
    }

    fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Result<u64, ProtocolError> {
        self.take().map(u64::from_ne_bytes)
    }
}

/// Understands one request.
pub(crate) fn parse(bytes: &[u8]) -> Result<FuseRequest<'_>, ProtocolError> {
    let mut fields = Fields { bytes, total: bytes.len() };
    let said = fields.u32()?;
    if said as usize != bytes.len() {
        return Err(ProtocolError::WrongLength { said, found: bytes.len() });
    }
    let opcode = fields.u32()?;
    let (unique, inode) = (fields.u64()?, fields.u64()?);
    // User, group and process of the caller; the kernel has checked what they may do.
    let _: [u8; 16] = fields.take()?;
    Ok(FuseRequest { unique, inode, body: parse_body(opcode, fields)? })
}

fn parse_body<'a>(opcode: u32, mut fields: Fields<'a>) -> Result<Body<'a>, ProtocolError> {
    Ok(match opcode {
        1 => {
            let name = fields.bytes;
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            Body::Lookup { name: &name[..end] }
        }
        2 | 42 => Body::Forget,
        3 => Body::GetAttributes,
        14 => Body::Open,
        15 | 28 => {
            let _handle = fields.u64()?;
            let (offset, size) = (fields.u64()?, fields.u32()?);
            if opcode == 15 {
                Body::Read { offset, size }
            } else {
                Body::ReadDirectory { offset, size }
            }
        }
        16 => {
            let _handle = fields.u64()?;
            let (offset, size) = (fields.u64()?, fields.u32()?);
            let _flags_and_owner: [u8; 20] = fields.take()?;
            let total = fields.total;
            let data = fields.bytes.get(..size as usize).ok_or(ProtocolError::Truncated(total))?;
            Body::Write { offset, data }
        }
        17 => Body::FileSystemStatus,
        18 | 29 => Body::Release,
        20 => Body::Synchronise,
        26 => {
            let (major, minor) = (fields.u32()?, fields.u32()?);
            let (_readahead, flags) = (fields.u32()?, fields.u32()?);
            Body::Init(Offer { major, minor, flags })
        }
        27 => Body::OpenDirectory,
        38 => Body::Destroy,
        43 => {
            let _handle = fields.u64()?;
            let (offset, length, mode) = (fields.u64()?, fields.u64()?, fields.u32()?);
            Body::Allocate { offset, length, mode }
        }
        _ => Body::Unsupported,
    })
}

/// The header of an answer with so many bytes of body; `errno` is 0 for success.
pub(crate) fn answer_header(
    unique: u64,
    errno: i32,
    body_bytes: usize,
) -> [u8; ANSWER_HEADER_BYTES] {
    let length = (ANSWER_HEADER_BYTES + body_bytes) as u32;
    let mut layout = Layout::new();
    layout.u32(length).u32((-errno) as u32).u64(unique);
    layout.finish()
}

/// What kind of inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Directory,
    File { size_bytes: u64 },
}

/// The answer to [`Body::Lookup`].
pub(crate) fn entry(inode: u64, node: Node) -> [u8; 128] {
    let mut layout = Layout::new();
    // Inode, generation, validity of name and attributes in seconds, and their nanoseconds. Names are looked up
    // again at every open: a volume may have been removed, and another one of that name created.
    layout.u64(inode).u64(0).u64(0).u64(VALID_SECONDS).u32(0).u32(0);
    attributes_into(&mut layout, inode, node);
    layout.finish()
}

/// The answer to [`Body::GetAttributes`].
pub(crate) fn attributes(inode: u64, node: Node) -> [u8; 104] {
    let mut layout = Layout::new();
    layout.u64(VALID_SECONDS).u32(0).u32(0);
    attributes_into(&mut layout, inode, node);
    layout.finish()
}

fn attributes_into<const N: usize>(layout: &mut Layout<N>, inode: u64, node: Node) {
    let (size, mode) = match node {
        Node::Directory => (0, libc::S_IFDIR | 0o700),
        Node::File { size_bytes } => (size_bytes, libc::S_IFREG | 0o600),
    };
    layout.u64(inode).u64(size).u64(size.div_ceil(512));
    layout.u64(0).u64(0).u64(0).u32(0).u32(0).u32(0); // Times: the epoch.
    // Mode, links, user and group (root), device, block size, flags.
    layout.u32(mode).u32(1).u32(0).u32(0).u32(0).u32(PAGE_BYTES).u32(0);
}

/// The answer to [`Body::Open`]: no cache in the kernel, writes side by side, no request at close.
pub(crate) fn opened_file() -> [u8; 16] {
    opened(OPEN_DIRECT_IO | OPEN_NOFLUSH | OPEN_PARALLEL_DIRECT_WRITES)
}

/// The answer to [`Body::OpenDirectory`].
pub(crate) fn opened_directory() -> [u8; 16] {
    opened(0)
}

fn opened(flags: u32) -> [u8; 16] {
    let mut layout = Layout::new();
    layout.u64(0).u32(flags).u32(0);
    layout.finish()
}

/// The answer to [`Body::Write`].
pub(crate) fn written(bytes: u32) -> [u8; 8] {
    let mut layout = Layout::new();
    layout.u32(bytes).u32(0);
    layout.finish()
}

/// The answer to [`Body::FileSystemStatus`]: full, since nothing can be added.
pub(crate) fn file_system_status() -> [u8; 80] {
    let mut layout = Layout::new();
    layout.u64(0).u64(0).u64(0).u64(0).u64(0).u32(PAGE_BYTES).u32(255).u32(PAGE_BYTES);
    layout.finish()
}

/// The answer to [`Body::ReadDirectory`]: as many entries from `offset` on as fit into `size` bytes. Entries
/// are (inode, name) of files.
pub(crate) fn directory<'a>(
    entries: impl Iterator<Item = (u64, &'a str)>,
    offset: u64,
    size: u32,
) -> Vec<u8> {
    let mut listing = Vec::new();
    for (index, (inode, name)) in entries.enumerate().skip(offset as usize) {
        let length = (24 + name.len()).next_multiple_of(8);
        if listing.len() + length > size as usize {
            break;
        }
        let mut layout: Layout<24> = Layout::new();
        let regular_file = libc::S_IFREG >> 12;
        layout.u64(inode).u64(index as u64 + 1).u32(name.len() as u32).u32(regular_file);
        listing.extend_from_slice(&layout.finish());
        listing.extend_from_slice(name.as_bytes());
        listing.resize(listing.len().next_multiple_of(8), 0);
    }
    listing
}

#[cfg(test)]
mod tests {
    use super::{Body, Node, ProtocolError, answer_header, attributes, directory, entry, parse};
    use proptest::prelude::{any, prop_assert, proptest};

    fn request(opcode: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(40 + body.len() as u32).to_ne_bytes());
        bytes.extend_from_slice(&opcode.to_ne_bytes());
        bytes.extend_from_slice(&7u64.to_ne_bytes());
        bytes.extend_from_slice(&2u64.to_ne_bytes());
        bytes.extend_from_slice(&[0; 16]);
        bytes.extend_from_slice(body);
        bytes
    }

    /// handle, offset, size, then the 20 bytes of flags and owner, then data.
    fn transfer(offset: u64, size: u32, data: &[u8]) -> Vec<u8> {
        let mut body = vec![0; 8];
        body.extend_from_slice(&offset.to_ne_bytes());
        body.extend_from_slice(&size.to_ne_bytes());
        body.extend_from_slice(&[0; 20]);
        body.extend_from_slice(data);
        body
    }

    #[test]
    fn requests_are_understood() {
        let read = request(15, &transfer(4096, 512, &[]));
        let read = parse(&read).unwrap();
        assert_eq!((read.unique, read.inode), (7, 2));
        assert_eq!(read.body, Body::Read { offset: 4096, size: 512 });
        let write = request(16, &transfer(8192, 3, b"abc"));
        assert_eq!(parse(&write).unwrap().body, Body::Write { offset: 8192, data: b"abc" });
        let lookup = request(1, b"data\0");
        assert_eq!(parse(&lookup).unwrap().body, Body::Lookup { name: b"data" });
        assert_eq!(parse(&request(999, &[])).unwrap().body, Body::Unsupported);
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let write = request(16, &transfer(0, 4, b"abc"));
        assert!(matches!(parse(&write), Err(ProtocolError::Truncated(_))));
        assert!(matches!(parse(&write[..50]), Err(ProtocolError::WrongLength { .. })));
        assert!(matches!(parse(&[1, 2]), Err(ProtocolError::Truncated(2))));
    }

    #[test]
    fn answers_have_the_layout_of_the_header_file() {
        let header = answer_header(9, libc::EIO, 8);
        assert_eq!(header[..4], 24u32.to_ne_bytes());
        assert_eq!(header[4..8], (-libc::EIO).to_ne_bytes());
        assert_eq!(header[8..], 9u64.to_ne_bytes());
        let file = Node::File { size_bytes: 1 << 30 };
        // Attributes begin after 16 and 40 bytes; the size is their second field, the mode the seventh u32.
        assert_eq!(attributes(3, file)[24..32], (1u64 << 30).to_ne_bytes());
        assert_eq!(entry(3, file)[..8], 3u64.to_ne_bytes());
        assert_eq!(entry(3, file)[48..56], (1u64 << 30).to_ne_bytes());
        let mode = attributes(1, Node::Directory)[76..80].try_into().unwrap();
        assert_eq!(u32::from_ne_bytes(mode), libc::S_IFDIR | 0o700);
    }

    #[test]
    fn directories_are_listed_in_pieces() {
        let names = ["data", "wal", "a-very-long-volume-name"];
        let entries = || names.iter().enumerate().map(|(i, name)| (i as u64 + 2, *name));
        let all = directory(entries(), 0, 4096);
        assert_eq!(all.len(), 32 + 32 + 48);
        assert_eq!(directory(entries(), 0, 70).len(), 64);
        assert_eq!(directory(entries(), 2, 4096).len(), 48);
        assert_eq!(directory(entries(), 3, 4096).len(), 0);
    }

    proptest! {
        #[test]
        fn nothing_makes_the_parser_panic(
            opcode in 0..60u32,
            body in proptest::collection::vec(any::<u8>(), 0..200),
            cut in any::<proptest::sample::Index>(),
        ) {
            let bytes = request(opcode, &body);
            let _ = parse(&bytes);
            prop_assert!(parse(&bytes[..cut.index(bytes.len())]).is_err());
        }
    }
}

//! A small NBD client of the tests' own, so that they need no program: one request at a time, both reply forms.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use super::storage::Storage;

/// Requests of the protocol.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
/// Flags of requests.
pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;

/// Anything bytes go through.
pub trait Stream: Read + Write + Send {}
impl Stream for UnixStream {}
impl Stream for TcpStream {}

/// A connection that has chosen an export.
pub struct NbdClient {
    stream: Mutex<Box<dyn Stream>>,
    socket: PathBuf,
    export: String,
    pub size_bytes: u64,
    pub flags: u16,
    pub structured: bool,
}

/// An error reply.
pub fn error_code(error: &io::Error) -> Option<u32> {
    error.get_ref()?.to_string().strip_prefix("nbd error ")?.parse().ok()
}

fn bytes<const N: usize>(stream: &mut dyn Stream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn u32_of(stream: &mut dyn Stream) -> io::Result<u32> {
    bytes(stream).map(u32::from_be_bytes)
}

pub fn option(stream: &mut dyn Stream, option: u32, data: &[u8]) -> io::Result<()> {
    let length = (data.len() as u32).to_be_bytes();
    stream.write_all(&[b"IHAVEOPT", &option.to_be_bytes()[..], &length, data].concat())
}

/// The next reply to an option: its type and data.
pub fn option_reply(stream: &mut dyn Stream) -> io::Result<(u32, Vec<u8>)> {
    let head: [u8; 20] = bytes(stream)?;
    let kind = u32::from_be_bytes(head[12..16].try_into().unwrap());
    let length = u32::from_be_bytes(head[16..].try_into().unwrap());
    let mut data = vec![0; length as usize];
    stream.read_exact(&mut data)?;
    Ok((kind, data))
}

/// Greets and is greeted.
pub fn greet(stream: &mut dyn Stream) -> io::Result<()> {
    let greeting: [u8; 18] = bytes(stream)?;
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    stream.write_all(&3u32.to_be_bytes())
}

impl NbdClient {
    pub fn connect(socket: &Path, export: &str, structured: bool) -> io::Result<NbdClient> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut client = NbdClient::choose(Box::new(stream), export, structured)?;
        client.socket = socket.to_path_buf();
        Ok(client)
    }

    pub fn connect_tcp(address: SocketAddr, export: &str) -> io::Result<NbdClient> {
        NbdClient::choose(Box::new(TcpStream::connect(address)?), export, true)
    }

    fn choose(
        mut stream: Box<dyn Stream>,
        export: &str,
        structured: bool,
    ) -> io::Result<NbdClient> {
        let s = &mut *stream;
        greet(s)?;
        if structured {
            option(s, 8, &[])?;
            assert_eq!(option_reply(s)?.0, 1);
        }
        let name = (export.len() as u32).to_be_bytes();
        option(s, 7, &[&name[..], export.as_bytes(), &[0, 0]].concat())?;
        let (kind, info) = option_reply(s)?;
        if kind != 3 {
            return Err(io::Error::other(format!("option refused with {kind:#x}")));
        }
        assert_eq!(option_reply(s)?.0, 1);
        Ok(NbdClient {
            size_bytes: u64::from_be_bytes(info[2..10].try_into().unwrap()),
            flags: u16::from_be_bytes(info[10..12].try_into().unwrap()),
            stream: Mutex::new(stream),
            socket: PathBuf::new(),
            export: export.to_string(),
            structured,
        })
    }

    /// One request and its reply.
    pub fn request(
        &self,
        kind: u16,
        flags: u16,
        offset: u64,
        length: u32,
        data: &[u8],
    ) -> io::Result<Vec<u8>> {
        let mut stream = self.stream.lock().unwrap();
        let cookie = offset ^ 0x5a5a;
        let head = [
            &0x2560_9513u32.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
            &cookie.to_be_bytes(),
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
        ];
        stream.write_all(&head.concat())?;
        stream.write_all(data)?;
        if kind == DISCONNECT {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest)?;
            return Ok(rest);
        }
        reply(&mut **stream, cookie, if kind == READ { length } else { 0 })
    }
}

fn reply(stream: &mut dyn Stream, cookie: u64, data_bytes: u32) -> io::Result<Vec<u8>> {
    let magic = u32_of(stream)?;
    let mut data = vec![0; data_bytes as usize];
    if magic == 0x6744_6698 {
        let error = u32_of(stream)?;
        assert_eq!(u64::from_be_bytes(bytes(stream)?), cookie);
        if error != 0 {
            return Err(io::Error::other(format!("nbd error {error}")));
        }
        stream.read_exact(&mut data)?;
        return Ok(data);
    }
    assert_eq!(magic, 0x668e_33ef);
    let (flags, kind) = (u16::from_be_bytes(bytes(stream)?), u16::from_be_bytes(bytes(stream)?));
    assert_eq!(flags, 1, "one chunk, the last");
    assert_eq!(u64::from_be_bytes(bytes(stream)?), cookie);
    let mut payload = vec![0; u32_of(stream)? as usize];
    stream.read_exact(&mut payload)?;
    if kind == 1 << 15 | 1 {
        let error = u32::from_be_bytes(payload[..4].try_into().unwrap());
        return Err(io::Error::other(format!("nbd error {error}")));
    }
    assert_eq!((kind, payload.len()), (1, data.len() + 8));
    Ok(payload.split_off(8))
}

impl Storage for NbdClient {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        into.copy_from_slice(&self.request(READ, 0, offset, into.len() as u32, &[])?);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.request(WRITE, 0, offset, data.len() as u32, data).map(drop)
    }

    fn discard(&self, offset: u64, length: u64) -> io::Result<()> {
        self.request(TRIM, 0, offset, length as u32, &[]).map(drop)
    }

    fn flush(&self) -> io::Result<()> {
        self.request(FLUSH, 0, 0, 0, &[]).map(drop)
    }

    fn another(&self) -> Box<dyn Storage> {
        Box::new(NbdClient::connect(&self.socket, &self.export, !self.structured).unwrap())
    }
}

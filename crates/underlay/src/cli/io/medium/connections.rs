//! The processes that are connected with the servers of our datastores on this host: processes, or
//! the kernel itself.
//!
//! A network block device names the process that connected it, but not the server. So this finds the servers, then the
//! other ends of their sockets, then the processes that hold these. What another user's processes hold is only seen by
//! root, and a server on another host is never seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem::size_of;
use std::path::Path;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// The word by which the process is started that serves a datastore's volumes.
const SERVER: &[u8] = b"datastore-server";

/// What is known of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    processes: BTreeMap<u32, Process>,
    /// Whether a server has a connection whose other end no process holds.
    to_the_kernel: bool,
}

/// A process.
#[derive(Clone, Debug, Default)]
struct Process {
    is_server: bool,
    /// Whether it is connected with a server.
    is_connected: bool,
    /// What it has open: sockets by inode, file systems in user space by number (none = the kernel does not say).
    sockets: BTreeSet<u64>,
    fuse: Vec<Option<u32>>,
}

impl Connections {
    pub(super) fn of_this_host() -> Connections {
        let found = fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = found.filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, Process::look(&entry.path())))
        });
        let mut processes: BTreeMap<u32, Process> = processes.collect();
        let servers = processes.values().filter(|process| process.is_server);
        let served: BTreeSet<u64> =
            servers.flat_map(|server| server.sockets.iter().copied()).collect();
        if served.is_empty() {
            return Connections { processes, to_the_kernel: false };
        }
        let ends = other_ends();
        let mut unheld: BTreeSet<u64> =
            served.iter().filter_map(|socket| ends.get(socket).copied()).collect();
        let reached = unheld.clone();
        for process in processes.values_mut() {
            process.is_connected = process.sockets.intersection(&reached).next().is_some();
            process.sockets.iter().for_each(|socket| {
                unheld.remove(socket);
            });
        }
        Connections { processes, to_the_kernel: !unheld.is_empty() }
    }

    /// Whether a network block device that this process connected is a volume of ours. Where it holds no socket any more, the
    /// kernel does; whose device that is, it does not say.
    pub(super) fn nbd_is_ours(&self, client: u32) -> bool {
        match self.processes.get(&client) {
            Some(process) => process.is_connected,
            None => self.to_the_kernel,
        }
    }

    /// Whether a file system in user space is made by a process that is connected with a volume of ours. `number`: the minor number
    /// of its device, by which newer kernels tell which process makes which.
    pub(super) fn fuse_is_ours(&self, number: u32) -> bool {
        let makes_it = |process: &Process| {
            process.fuse.iter().any(|known| known.is_none_or(|known| known == number))
        };
        self.processes.values().any(|process| process.is_connected && makes_it(process))
    }

    /// Processes, and whether they are connected with a server.
    #[cfg(test)]
    pub(super) fn of<const N: usize>(known: [(u32, bool); N], to_the_kernel: bool) -> Connections {
        let process = |(pid, is_connected)| (pid, Process { is_connected, ..Process::default() });
        Connections { processes: known.into_iter().map(process).collect(), to_the_kernel }
    }
}

impl Process {
    /// What is seen of it in its folder of `/proc`.
    fn look(folder: &Path) -> Process {
        let words = fs::read(folder.join("cmdline")).unwrap_or_default();
        let is_server = words.split(|byte| *byte == 0).nth(1) == Some(SERVER);
        let mut process = Process { is_server, ..Process::default() };
        for open in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(open.path()) else { continue };
            let target = target.to_string_lossy();
            let socket = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
            if let Some(inode) = socket.and_then(|inode| inode.parse().ok()) {
                process.sockets.insert(inode);
            } else if target == "/dev/fuse" {
                let text = fs::read_to_string(folder.join("fdinfo").join(open.file_name()));
                process.fuse.push(text.ok().and_then(|text| fuse_number(&text)));
            }
        }
        process
    }
}

/// Which file system in user space a descriptor of `/dev/fuse` makes, where the kernel tells.
fn fuse_number(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix("fuse_connection:")?.trim().parse().ok())
}

/// The other end of each connected socket of this host, by inode.
fn other_ends() -> BTreeMap<u64, u64> {
    let mut ends = unix_peers().unwrap_or_default();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        ends.extend(tcp_peers(&fs::read_to_string(table).unwrap_or_default()));
    }
    ends
}

/// The other ends of connections within this host, from the kernel's table.
fn tcp_peers(table: &str) -> BTreeMap<u64, u64> {
    let parsed = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let inode: u64 = fields.get(9)?.parse().ok()?;
        Some(((*fields.get(1)?, *fields.get(2)?), inode))
    });
    let sockets: BTreeMap<(&str, &str), u64> = parsed.collect();
    let peer = |(&(here, there), &inode): (&(&str, &str), &u64)| {
        Some((inode, *sockets.get(&(there, here))?))
    };
    sockets.iter().filter_map(peer).filter(|(one, other)| *one != 0 && *other != 0).collect()
}

/// `SOCK_DIAG_BY_FAMILY` of `linux/sock_diag.h`, which also is the type of its answers.
const DIAG_BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP` of `linux/netlink.h`.
const REQUEST_ALL: u16 = 0x301;
const HEAD_BYTES: usize = 16;
/// Length of `struct unix_diag_msg` of `linux/unix_diag.h`, and where the inode is in it.
const MESSAGE_BYTES: usize = 16;
const INODE_AT: usize = 4;
/// `UDIAG_SHOW_PEER`, and the attribute `UNIX_DIAG_PEER` that it asks for.
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;

/// The other ends of unix sockets; the kernel has no file that says so.
fn unix_peers() -> rustix::io::Result<BTreeMap<u64, u64>> {
    let kind = (AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(kind.0, kind.1, kind.2, Some(netlink::SOCK_DIAG))?;
    rustix::net::send(&socket, &unix_request(), SendFlags::empty())?;
    let mut peers = BTreeMap::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let (length, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if length == 0 || !take_peers(&buffer[..length], &mut peers) {
            return Ok(peers);
        }
    }
}

/// `struct nlmsghdr`, then `struct unix_diag_req`, in this host's order of bytes.
fn unix_request() -> Vec<u8> {
    let body = [
        u32::from(AddressFamily::UNIX.as_raw()).to_le_bytes(),
        u32::MAX.to_ne_bytes(), // In all states.
        0u32.to_ne_bytes(),     // Of any inode.
        SHOW_PEER.to_ne_bytes(),
        u32::MAX.to_ne_bytes(), // No cookie.
        u32::MAX.to_ne_bytes(),
    ]
    .concat();
    let length = (HEAD_BYTES + body.len()) as u32;
    let mut request = length.to_ne_bytes().to_vec();
    request.extend(DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(REQUEST_ALL.to_ne_bytes());
    request.extend([0; 2 * size_of::<u32>()]);
    request.extend(body);
    request
}

/// Takes the pairs out of messages; returns whether more follow.
fn take_peers(mut messages: &[u8], peers: &mut BTreeMap<u64, u64>) -> bool {
    while let Some(length) = u32_at(messages, 0).map(|length| length as usize) {
        let Some(message) = messages.get(..length).filter(|_| length >= HEAD_BYTES) else {
            return false;
        };
        if u16_at(message, 4) != Some(DIAG_BY_FAMILY) {
            // The end, or an error.
            return false;
        }
        let inode = u32_at(message, HEAD_BYTES + INODE_AT);
        let mut attributes = message.get(HEAD_BYTES + MESSAGE_BYTES..).unwrap_or_default();
        while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
            if kind == PEER
                && let (Some(inode), Some(peer)) = (inode, u32_at(attributes, 4))
            {
                peers.insert(u64::from(inode), u64::from(peer));
            }
            let next = usize::from(length).max(4).next_multiple_of(4);
            attributes = attributes.get(next..).unwrap_or_default();
        }
        messages = messages.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::{BTreeMap, fuse_number, other_ends, take_peers, tcp_peers};

    fn inode(socket: &impl AsRawFd) -> u64 {
        let link = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let target = std::fs::read_link(link).unwrap().to_string_lossy().into_owned();
        target.trim_start_matches("socket:[").trim_end_matches(']').parse().unwrap()
    }

    #[test]
    fn the_other_end_of_a_socket_is_found() {
        let (one, other) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let ends = other_ends();
        assert_eq!(ends.get(&inode(&server)), Some(&inode(&client)));
        assert_eq!(ends.get(&inode(&client)), Some(&inode(&server)));
        assert_eq!(ends.get(&inode(&listener)), None);
        if !ends.contains_key(&inode(&one)) {
            underlay_host::skip!("this kernel does not tell the other ends of unix sockets");
        }
        assert_eq!(ends.get(&inode(&one)), Some(&inode(&other)));
    }

    #[test]
    fn sockets_that_are_closed_have_no_other_end() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:2A29 0100007F:B2F0 01 00000000:00000000 00:00000000 00000000 0 0 51 1 0 20 4 30 10 -1\n\
            1: 0100007F:B2F0 0100007F:2A29 06 00000000:00000000 00:00000000 00000000 0 0 0 1 0 20 4 30 10 -1\n";
        assert_eq!(tcp_peers(table), BTreeMap::new());
        assert_eq!(tcp_peers(&table.replace("0 0 0 1", "0 0 52 1")), [(51, 52), (52, 51)].into());
    }

    #[test]
    fn a_descriptor_names_its_file_system_where_the_kernel_tells() {
        assert_eq!(fuse_number("pos:\t0\nflags:\t02100002\nfuse_connection:\t47\n"), Some(47));
        assert_eq!(fuse_number("pos:\t0\nflags:\t02100002\n"), None);
    }

    #[test]
    fn answers_are_read_as_far_as_they_go() {
        let attribute =
            [&8u16.to_ne_bytes()[..], &2u16.to_ne_bytes(), &77u32.to_ne_bytes()].concat();
        let body = [&[1, 1, 1, 0][..], &76u32.to_ne_bytes(), &[0; 8], &attribute].concat();
        let length = (16 + body.len()) as u32;
        let message = [&length.to_ne_bytes()[..], &20u16.to_ne_bytes(), &[0; 10], &body].concat();
        let both = [&message[..], &message].concat();
        let mut peers = BTreeMap::new();
        assert!(take_peers(&both, &mut peers));
        assert_eq!(peers, [(76, 77)].into());
        for end in 1..both.len() {
            // Whatever is cut off, and whatever stands in its place.
            let mut peers = BTreeMap::new();
            let _whether_more_follows = take_peers(&both[..end], &mut peers);
            for value in [0, 1, 255] {
                let mut changed = both.clone();
                changed[end] = value;
                let _whether_more_follows = take_peers(&changed, &mut peers);
            }
        }
    }
}

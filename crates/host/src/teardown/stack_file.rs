//! The file of a teardown stack.
//!
//! ```text
//! {"format":1,"purpose":"run","pid":4711,"started_ticks":123456,"boot_id":"..."}
//! {"add":{"id":1,"resource":{"directory":{"path":"/var/lib/underlay/runs/x"}}}}
//! {"add":{"id":2,"resource":{"mount":{"target":"/var/lib/underlay/runs/x/data"}}}}
//! {"gone":{"id":2}}
//! ```
//!
//! An `add` is durable before its resource is created; a `gone` is written after the resource was
//! removed and need not be durable, because removing is idempotent. The owner holds an exclusive
//! `flock` while it lives. A last line without newline is one whose write was cut short: its
//! resource was never created. The file appears under its name complete with its header.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::process_table::start_ticks;
use crate::teardown::resource::Resource;

/// The version that this code writes and reads.
const FORMAT: u32 = 1;
/// The ending of a complete stack's file name.
pub(crate) const EXTENSION: &str = "stack";
/// The ending while its header is being written.
pub(crate) const NEW_EXTENSION: &str = "new";

/// How long a lock without living owner is waited for.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// Who owns the stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format: u32,
    pub purpose: String,
    pub pid: u32,
    pub started_ticks: u64,
    pub boot_id: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Line {
    Add { id: u64, resource: Resource },
    Gone { id: u64 },
}

/// What a stack's file says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub header: Header,
    /// What is still there, in the order of registration.
    pub pending: Vec<(u64, Resource)>,
    /// Numbers of complete lines that cannot be read; one-based.
    pub damaged: Vec<usize>,
}

/// An open, locked stack file.
#[derive(Debug)]
pub(crate) struct StackFile {
    path: PathBuf,
    file: File,
}

/// What taking over a stack's file found.
pub(crate) enum Takeover {
    /// Its owner is alive.
    Owned,
    /// It was removed in the meantime.
    Vanished,
    /// Its owner is dead; it is ours now.
    Orphan(StackFile, Contents),
}

impl Header {
    /// For a stack owned by this process.
    pub fn own(purpose: &str) -> Header {
        let pid = std::process::id();
        Header {
            format: FORMAT,
            purpose: purpose.to_string(),
            pid,
            started_ticks: start_ticks(pid).unwrap_or_default(),
            boot_id: boot_id(),
        }
    }

    /// Whether the owner lives, judged without the lock.
    fn owner_alive(&self) -> bool {
        self.boot_id == boot_id() && start_ticks(self.pid) == Some(self.started_ticks)
    }

    /// Whether the host was rebooted since.
    pub fn before_reboot(&self) -> bool {
        self.boot_id != boot_id()
    }
}

impl StackFile {
    /// Creates the file `<name>.stack` with its header, locked.
    pub fn create(dir: &Path, name: &str, header: &Header) -> Result<StackFile, HostError> {
        let path = dir.join(format!("{name}.{EXTENSION}"));
        let new = dir.join(format!("{name}.{NEW_EXTENSION}"));
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .read(true)
            .mode(0o600)
            .open(&new)
            .map_err(HostError::file("create", &new))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(HostError::file("lock", &new))?;
        let mut stack = StackFile { path: new.clone(), file };
        stack.append(header)?;
        stack.sync()?;
        fs::rename(&new, &path).map_err(HostError::file("rename", &new))?;
        stack.path = path;
        sync_dir(dir)?;
        Ok(stack)
    }

    /// Opens the file of another owner and takes it over if that owner is dead.
    pub fn take_over(path: &Path) -> Result<Takeover, HostError> {
        let file = match OpenOptions::new().append(true).read(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Takeover::Vanished);
            }
            Err(error) => return Err(HostError::file("open", path)(error)),
        };
        if !lock_orphan(&file, path)? {
            return Ok(Takeover::Owned);
        }
        // Another one may have cleaned up between our open and our lock.
        if file.metadata().map_err(HostError::file("inspect", path))?.nlink() == 0 {
            return Ok(Takeover::Vanished);
        }
        let mut stack = StackFile { path: path.to_path_buf(), file };
        let contents = stack.read_and_trim()?;
        if contents.header.owner_alive() {
            return Ok(Takeover::Owned);
        }
        Ok(Takeover::Orphan(stack, contents))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down that a resource is about to be created; durable on return.
    pub fn add(&mut self, id: u64, resource: &Resource) -> Result<(), HostError> {
        self.append(&Line::Add { id, resource: resource.clone() })?;
        self.sync()
    }

    /// Notes that a resource is gone.
    pub fn gone(&mut self, id: u64) -> Result<(), HostError> {
        self.append(&Line::Gone { id })
    }

    /// Removes the file, once all its resources are gone.
    pub fn remove(&self) -> Result<(), HostError> {
        fs::remove_file(&self.path).map_err(HostError::file("remove", &self.path))?;
        self.path.parent().map_or(Ok(()), sync_dir)
    }

    /// One write per line, so that a killed owner leaves at most the last line torn.
    fn append(&mut self, line: &impl Serialize) -> Result<(), HostError> {
        let mut text = serde_json::to_string(line)
            .map_err(HostError::file("describe a resource for", &self.path))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(HostError::file("write", &self.path))
    }

    fn sync(&self) -> Result<(), HostError> {
        self.file.sync_data().map_err(HostError::file("sync", &self.path))
    }

    /// Reads the file and cuts off a torn last line, so that what is appended starts a line.
    fn read_and_trim(&mut self) -> Result<Contents, HostError> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0)).map_err(HostError::file("read", &self.path))?;
        self.file.read_to_end(&mut bytes).map_err(HostError::file("read", &self.path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let contents = parse(&bytes[..whole])
            .map_err(|reason| HostError::BadStack { path: self.path.clone(), reason })?;
        if whole < bytes.len() {
            self.file.set_len(whole as u64).map_err(HostError::file("trim", &self.path))?;
        }
        Ok(contents)
    }
}

/// Locks the file unless its owner lives. A child that a killed owner was just starting holds a copy
/// of the lock until it executes its program, and another cleaner until it is done: both are waited
/// for, when the header says that the owner is dead.
fn lock_orphan(file: &File, path: &Path) -> Result<bool, HostError> {
    let deadline = Instant::now() + LOCK_LIMIT;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(HostError::file("lock", path)(error)),
        }
        if header_says_alive(path) || Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Unreadable headers count as alive: the lock shows that the process exists.
fn header_says_alive(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    let header: Option<Header> =
        text.lines().next().and_then(|line| serde_json::from_str(line).ok());
    header.is_none_or(|header| header.owner_alive())
}

fn parse(bytes: &[u8]) -> Result<Contents, String> {
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let (_, first) = lines.next().filter(|(_, line)| !line.is_empty()).ok_or("it is empty")?;
    let header: Header =
        serde_json::from_slice(first).map_err(|error| format!("its header: {error}"))?;
    if header.format != FORMAT {
        return Err(format!("its format is {}, this version knows {FORMAT}", header.format));
    }
    let mut contents = Contents { header, pending: Vec::new(), damaged: Vec::new() };
    for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(Line::Add { id, resource }) => contents.pending.push((id, resource)),
            Ok(Line::Gone { id }) => contents.pending.retain(|(pending, _)| *pending != id),
            Err(_) => contents.damaged.push(index + 1),
        }
    }
    Ok(contents)
}

fn sync_dir(dir: &Path) -> Result<(), HostError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(HostError::file("sync", dir))
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Contents, Header, StackFile, Takeover, parse};
    use crate::teardown::resource::Resource;

    fn file(name: &str) -> Resource {
        Resource::File { path: PathBuf::from(name) }
    }

    fn pending(contents: &Contents) -> Vec<u64> {
        contents.pending.iter().map(|(id, _)| *id).collect()
    }

    #[test]
    fn a_stack_reads_back_without_what_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let header = Header { pid: u32::MAX, ..Header::own("test") };
        let mut stack = StackFile::create(dir.path(), "s", &header).unwrap();
        for id in 1..=3 {
            stack.add(id, &file("/a")).unwrap();
        }
        stack.gone(2).unwrap();
        let path = stack.path().to_path_buf();
        assert!(matches!(StackFile::take_over(&path).unwrap(), Takeover::Owned), "locked");
        drop(stack);
        let Takeover::Orphan(_, contents) = StackFile::take_over(&path).unwrap() else {
            panic!("the owner is dead")
        };
        assert_eq!(contents.header, header);
        assert_eq!(pending(&contents), [1, 3]);
    }

    #[test]
    fn a_stack_of_a_living_process_is_owned_even_without_lock() {
        let dir = tempfile::tempdir().unwrap();
        let stack = StackFile::create(dir.path(), "s", &Header::own("test")).unwrap();
        let path = stack.path().to_path_buf();
        drop(stack);
        assert!(matches!(StackFile::take_over(&path).unwrap(), Takeover::Owned));
    }

    #[test]
    fn a_damaged_line_is_named_and_the_others_count() {
        let header = serde_json::to_string(&Header::own("test")).unwrap();
        let add = |id: u64| {
            format!("{{\"add\":{{\"id\":{id},\"resource\":{{\"file\":{{\"path\":\"/a\"}}}}}}}}")
        };
        let text = format!("{header}\n{}\n\0\0garbage\n{}\n", add(1), add(2));
        let contents = parse(text.as_bytes()).unwrap();
        assert_eq!(pending(&contents), [1, 2]);
        assert_eq!(contents.damaged, [3]);
    }

    #[test]
    fn a_header_of_another_format_is_refused() {
        let header = Header { format: 2, ..Header::own("test") };
        let text = format!("{}\n", serde_json::to_string(&header).unwrap());
        assert!(parse(text.as_bytes()).unwrap_err().contains("format is 2"));
        assert!(parse(b"").is_err());
        assert!(parse(b"{\"format\":1\n").is_err());
    }
}

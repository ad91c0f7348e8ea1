//! What the lab and the process of a load generator say to each other first: a line each. All that follows is between the two
//! ends of `underlay_driver::process`.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use underlay_driver::process::SpecLine;

use super::workload_line::WorkloadLine;

/// Longest line that one of the ends begins with.
const LINE_MAX: u64 = 1 << 20;

/// What the process is told first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Start {
    pub(super) workload: WorkloadLine,
    pub(super) seed: u64,
    /// Of a web shop: the number of the first customer that users register.
    pub(super) first_new_customer: Option<u32>,
    pub(super) drive: SpecLine,
    /// As a URL. A server's Unix socket asks for no password.
    pub(super) target: String,
    /// The origin of the run on the host's monotonic clock.
    pub(super) origin_ns: u64,
}

/// What it answers to that.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Started {
    Ready,
    Refused { reason: String },
}

pub(super) fn write_line<T: Serialize>(stream: &mut UnixStream, content: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(content)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// One line, of an end that says nothing more before it is answered.
pub(super) fn read_line<T: for<'de> Deserialize<'de>>(stream: &mut UnixStream) -> io::Result<T> {
    let mut line = String::new();
    if BufReader::new(stream.take(LINE_MAX)).read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

/// The clock that [`Instant`](std::time::Instant)s are of, which all processes of a host share.
pub(super) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

//! A peer's program as a child, and what it cost.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::Failure;

/// A child that has ended well.
#[derive(Debug)]
pub struct Ended {
    /// What it wrote to standard output.
    pub stdout: String,
    /// User and system time of it and of all its descendants that were waited for.
    pub cpu: Duration,
    /// From start to end.
    pub elapsed: Duration,
}

/// Runs a command to its end.
///
/// # Errors
/// When it cannot be started or fails; the message holds the end of what it wrote. `what` names it in messages,
/// since arguments may hold a password.
pub fn run(command: &mut Command, what: &str) -> Result<Ended, Failure> {
    let (before, began) = (children_cpu(), Instant::now());
    let output = command.output().map_err(|error| format!("{what}: {error}"))?;
    let (cpu, elapsed) = (children_cpu() - before, began.elapsed());
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{what}: {}\n{}{}", output.status, tail(&stdout), tail(&stderr)).into());
    }
    Ok(Ended { stdout, cpu, elapsed })
}

/// The last lines of a long text.
pub fn tail(text: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = text.lines().collect();
    let mut end = lines[lines.len().saturating_sub(LINES)..].join("\n");
    end.push('\n');
    end
}

/// CPU time of all children that have ended and were waited for, and of theirs.
fn children_cpu() -> Duration {
    // SAFETY: a rusage is plain numbers, for which zero is a value; getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let of = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs())
            + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    of(usage.ru_utime) + of(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::run;

    /// Descendants are charged: the work is done by a child of the child.
    #[test]
    fn the_whole_tree_of_a_child_is_charged() {
        let work = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo done";
        let ended = run(Command::new("sh").args(["-c", work]), "sh").unwrap();
        assert_eq!(ended.stdout, "done\n");
        assert!(ended.cpu > Duration::from_millis(1), "{ended:?}");
    }

    #[test]
    fn a_failure_says_what_was_written_last() {
        let failed = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), "the peer");
        let message = failed.unwrap_err().to_string();
        assert!(message.starts_with("the peer: exit status: 3") && message.contains("why"));
    }
}

//! Switching FUSE over io_uring on or off for a benchmark (`--ring on|off`), and back again however it ends.
//!
//! The setting is the host's: what it was is on the teardown stack before it is changed. Without the option nothing is changed.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use underlay_datastore::Datastore;
use underlay_host::{FUSE_OVER_IO_URING, KernelSetting, Teardown};

use super::site::{Failure, argument};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Does what the command line says. Interrupted, the program unwinds the stack and ends.
pub fn switch(teardown: &Teardown) -> Result<(), Failure> {
    let value = match argument("--ring").as_deref() {
        Some("on") => "Y",
        Some("off") => "N",
        Some(other) => return Err(format!("--ring is on or off, not {other}").into()),
        None => return Ok(()),
    };
    unwind_when_interrupted(teardown.clone())?;
    KernelSetting::change(teardown, Path::new(FUSE_OVER_IO_URING), value)?;
    Ok(())
}

/// Through what its requests come.
pub fn way(datastore: &mut dyn Datastore) -> Result<&'static str, Failure> {
    Ok(datastore.timing()?.map_or("none", |timing| timing.export.as_str()))
}

extern "C" fn note(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

fn unwind_when_interrupted(teardown: Teardown) -> Result<(), Failure> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler stores into an atomic, which may be done at any time.
        unsafe { libc::signal(signal, note as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
    thread::Builder::new().name("interrupt".to_string()).spawn(move || {
        while !INTERRUPTED.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
        }
        for leftover in teardown.unwind() {
            eprintln!("left over: {leftover:?}");
        }
        std::process::exit(130);
    })?;
    Ok(())
}

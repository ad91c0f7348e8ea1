//! Removing what killed owners left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::HostError;
use crate::process_table::start_ticks;
use crate::state_dir::StateDir;
use crate::teardown::resource::Resource;
use crate::teardown::stack_file::{Contents, EXTENSION, NEW_EXTENSION, StackFile, Takeover};
use crate::teardown::unwind_pending;

/// What [`clean`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Resources removed, one line each.
    pub removed: Vec<String>,
    /// Stacks left alone because their owner is alive, one line each.
    pub skipped_alive: Vec<String>,
    /// Resources and stacks that could not be removed, with reason, one line each.
    pub failed: Vec<String>,
}

/// A child that was being started when its owner was killed needs this long to show its marker.
const SETTLE: Duration = Duration::from_millis(100);

/// Unwinds all stacks whose owner is dead. Safe at any time and from several processes at once.
pub fn clean(state: &StateDir) -> Result<CleanReport, HostError> {
    let dir = state.teardown_dir();
    let mut paths: Vec<PathBuf> = fs::read_dir(&dir)
        .map_err(HostError::file("list", &dir))?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    let mut report = CleanReport::default();
    for path in &paths {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(EXTENSION) => clean_stack(path, &mut report),
            Some(NEW_EXTENSION) => clean_unfinished(path, &mut report),
            _ => {}
        }
    }
    Ok(report)
}

fn clean_stack(path: &Path, report: &mut CleanReport) {
    match StackFile::take_over(path) {
        Ok(Takeover::Owned) => report.skipped_alive.push(format!("{}", path.display())),
        Ok(Takeover::Vanished) => {}
        Ok(Takeover::Orphan(file, contents)) => unwind_orphan(file, contents, report),
        Err(error) => report.failed.push(error.to_string()),
    }
}

fn unwind_orphan(mut file: StackFile, contents: Contents, report: &mut CleanReport) {
    if written_just_now(file.path()) {
        std::thread::sleep(SETTLE);
    }
    let Contents { header, mut pending, damaged } = contents;
    if header.before_reboot() {
        pending.retain(|(_, resource)| resource.survives_reboot());
    }
    let leftovers = unwind_pending(pending, |id, resource: &Resource, removal| {
        if removal == super::removal::Removal::Removed {
            report.removed.push(resource.to_string());
        }
        file.gone(id)
    });
    report.failed.extend(
        leftovers.iter().map(|leftover| format!("{}: {}", leftover.resource, leftover.reason)),
    );
    for line in &damaged {
        let path = file.path().display();
        report.failed.push(format!("{path}: line {line} is damaged; inspect and delete the file"));
    }
    if leftovers.is_empty()
        && damaged.is_empty()
        && let Err(error) = file.remove()
    {
        report.failed.push(error.to_string());
    }
}

/// A file without complete header: nothing was registered in it. Its name ends in the owner's number.
fn clean_unfinished(path: &Path, report: &mut CleanReport) {
    let pid = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .and_then(|stem| stem.rsplit('-').nth(1)?.parse().ok());
    if pid.is_some_and(|pid: u32| start_ticks(pid).is_some()) {
        report.skipped_alive.push(path.display().to_string());
    } else if let Err(error) = fs::remove_file(path) {
        report.failed.push(HostError::file("remove", path)(error).to_string());
    }
}

fn written_just_now(path: &Path) -> bool {
    let modified = path.metadata().and_then(|metadata| metadata.modified()).ok();
    modified
        .and_then(|modified| SystemTime::now().duration_since(modified).ok())
        .is_some_and(|age| age < Duration::from_secs(2))
}

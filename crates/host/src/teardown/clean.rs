//! Removing what killed owners left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::HostError;
use crate::process_table::start_ticks;
use crate::state_dir::StateDir;
use crate::teardown::resource::Resource;
use crate::teardown::stack_file::{Contents, EXTENSION, NEW_EXTENSION, StackFile, Takeover};
use crate::teardown::unwinding::unwind_pending;

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

pub(super) fn unwind_orphan(mut file: StackFile, contents: Contents, report: &mut CleanReport) {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use proptest::collection::vec;
    use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::{CleanReport, clean};
    use crate::state_dir::StateDir;
    use crate::teardown::resource::Resource;
    use crate::teardown::stack_file::{Header, StackFile};

    /// One step of an owner's life.
    #[derive(Clone, Debug)]
    enum Step {
        Directory,
        File,
        Release(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![Just(Step::Directory), Just(Step::File), any::<u8>().prop_map(Step::Release),]
    }

    /// A stack file with where each of its lines ends, and what the line is about.
    struct Written {
        file: PathBuf,
        header_end: usize,
        adds: Vec<(usize, u64, PathBuf)>,
        gones: Vec<(usize, u64)>,
    }

    /// Writes the file of an owner that is dead; `things` is where its resources would be.
    fn write_stack(state: &StateDir, things: &Path, steps: &[Step]) -> Written {
        let header = Header { pid: u32::MAX, ..Header::own("test") };
        let mut stack = StackFile::create(&state.teardown_dir(), "s", &header).unwrap();
        let file = stack.path().to_path_buf();
        let length = || usize::try_from(fs::metadata(&file).unwrap().len()).unwrap();
        let header_end = length();
        let (mut adds, mut gones) = (Vec::new(), Vec::new());
        for (id, step) in (1u64..).zip(steps) {
            match step {
                Step::Directory | Step::File => {
                    let path = things.join(id.to_string());
                    let resource = match step {
                        Step::Directory => Resource::Directory { path: path.clone() },
                        _ => Resource::File { path: path.clone() },
                    };
                    stack.add(id, &resource).unwrap();
                    adds.push((length(), id, path));
                }
                Step::Release(which) if !adds.is_empty() => {
                    let (_, id, _) = adds[usize::from(*which) % adds.len()];
                    stack.gone(id).unwrap();
                    gones.push((length(), id));
                }
                Step::Release(_) => {}
            }
        }
        Written { file, header_end, adds, gones }
    }

    proptest! {
        // Each case syncs a dozen times.
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Whatever was written of a stack when its owner died, replaying it removes exactly the
        /// resources whose line is complete, and nothing else.
        #[test]
        fn any_prefix_replays_safely(
            steps in vec(step(), 0..12),
            cut in any::<proptest::sample::Index>(),
            tail in vec(any::<u8>().prop_filter("a torn line has no end", |b| *b != b'\n'), 0..20),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let state = StateDir::at(dir.path().join("state")).unwrap();
            let things = dir.path().canonicalize().unwrap().join("things");
            fs::create_dir(&things).unwrap();
            let written = write_stack(&state, &things, &steps);
            let mut bytes = fs::read(&written.file).unwrap();
            let cut = cut.index(bytes.len() + 1);
            bytes.truncate(cut);
            bytes.extend(&tail);
            fs::write(&written.file, &bytes).unwrap();

            // What the owner created: only after the whole line was durable. The line of a resource
            // whose cut end was the newline alone counts as torn.
            let live = |end: usize, id: u64| {
                end <= cut && !written.gones.iter().any(|(gone, of)| *of == id && *gone <= cut)
            };
            for (end, id, path) in &written.adds {
                if live(*end, *id) {
                    fs::create_dir(path).ok();
                }
            }
            // Bystanders at the places of resources that were never created, or released before.
            let bystanders: Vec<&PathBuf> = written.adds.iter()
                .filter(|(end, id, _)| !live(*end, *id)).map(|(_, _, path)| path).collect();
            for path in &bystanders {
                fs::write(path, b"not ours").unwrap();
            }
            // A registered file is a file.
            for ((end, id, path), step) in written.adds.iter().zip(
                steps.iter().filter(|step| !matches!(step, Step::Release(_)))) {
                if live(*end, *id) && matches!(step, Step::File) {
                    fs::remove_dir(path).unwrap();
                    fs::write(path, b"ours").unwrap();
                }
            }

            let report = clean(&state).unwrap();
            for path in bystanders {
                prop_assert_eq!(fs::read(path).unwrap(), b"not ours");
            }
            if cut < written.header_end {
                prop_assert_eq!(report.failed.len(), 1, "{:?}", report);
                prop_assert!(report.removed.is_empty());
            } else {
                prop_assert!(report.failed.is_empty(), "{:?}", report);
                let lived = written.adds.iter().filter(|(end, id, _)| live(*end, *id));
                prop_assert_eq!(report.removed.len(), lived.clone().count());
                for (_, _, path) in lived {
                    prop_assert!(!path.exists());
                }
                prop_assert!(!written.file.exists());
                prop_assert_eq!(clean(&state).unwrap(), CleanReport::default());
            }
        }
    }

    #[test]
    fn an_unfinished_file_of_a_dead_owner_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_path_buf()).unwrap();
        let dead = state.teardown_dir().join("run-4294967295-aa.new");
        let alive = state.teardown_dir().join(format!("run-{}-aa.new", std::process::id()));
        fs::write(&dead, b"{\"for").unwrap();
        fs::write(&alive, b"{\"for").unwrap();
        let report = clean(&state).unwrap();
        assert!(!dead.exists() && alive.exists());
        assert_eq!((report.skipped_alive.len(), report.failed.len()), (1, 0));
    }

    #[test]
    fn a_damaged_line_keeps_the_file_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state")).unwrap();
        let written = write_stack(&state, dir.path(), &[Step::File]);
        let ours = &written.adds[0].2;
        fs::write(ours, b"ours").unwrap();
        let mut bytes = fs::read(&written.file).unwrap();
        bytes.extend(b"garbage\n");
        fs::write(&written.file, &bytes).unwrap();
        let report = clean(&state).unwrap();
        assert!(!ours.exists() && written.file.exists());
        assert!(report.failed[0].contains("line 3 is damaged"), "{report:?}");
    }
}

//! Where records are: names for new ones, and the unfinished one that an execution resumes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use underlay_core::{Evidence, utc_timestamp};
use underlay_record::{ExecutionStatus, Record};
use underlay_study::{PlanOptions, Source, recorded_study};

use crate::lab::Place;
use crate::stop::Stop;

/// The folder for records, below the current one.
pub const FOLDER: &str = "underlay-records";
/// Ending of record files.
pub const ENDING: &str = "sqlite";

/// An execution older than this is not gone on with: the host is no longer the same experiment.
const RESUMED_WITHIN: Duration = Duration::from_secs(24 * 3600);

/// Where an execution of a study is recorded: in the given file; or in the newest unfinished record of the
/// same study with the same options; or in a new one.
///
/// # Errors
/// The given file is there and cannot be gone on with. Nothing has been touched then, and nothing may be said of what is
/// in it: it would look like the answer to this study.
pub fn place(
    name: &str,
    source: &Source,
    options: &PlanOptions,
    fresh: Fresh,
) -> Result<Place, Stop> {
    if let Some(path) = &options.out {
        if !path.exists() {
            return Ok(Place::New(path.clone()));
        }
        if fresh == Fresh::No && is_unfinished(path, source, options) {
            return Ok(Place::Resumed(path.clone()));
        }
        return Err(taken(path, fresh));
    }
    let unfinished = match fresh {
        Fresh::Yes => None,
        Fresh::No => {
            records_of(name).into_iter().rev().find(|path| is_unfinished(path, source, options))
        }
    };
    Ok(match unfinished {
        Some(path) => Place::Resumed(path),
        None => Place::New(new_path(name)),
    })
}

/// Why a file that is there is not written to, and what can be done.
fn taken(path: &Path, fresh: Fresh) -> Stop {
    let shown = path.display();
    let Ok(record) = Record::open_read_only(path) else {
        return Stop::bad_input(format!("`{shown}` already exists and is not an Underlay record"))
            .with_hint("name another file with --out");
    };
    let study = &record.manifest().study_name;
    let is_finished =
        record.execution().is_ok_and(|execution| execution.status == ExecutionStatus::Finished);
    if is_finished {
        return Stop::bad_input(format!(
            "`{shown}` already exists: the finished record of a run of `{study}`"
        ))
        .with_hint(format!(
            "name another file with --out; `underlay show {shown}` shows its content"
        ));
    }
    let stop = Stop::bad_input(format!(
        "`{shown}` already exists: the unfinished record of a run of `{study}`"
    ));
    stop.with_hint(match fresh {
        Fresh::Yes => "name another file with --out; without --fresh, the same study with the same options is resumed \
            in it",
        Fresh::No => {
            "name another file with --out; it can be resumed within a day, with the study and options that it was \
             started with"
        }
    })
}

/// Whether an unfinished execution is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Start over.
    Yes,
    /// Resume the unfinished execution.
    No,
}

/// The records of a study in the usual folder, oldest first (their names carry their time).
fn records_of(name: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(FOLDER) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .filter(|path| {
            path.file_name()
                .and_then(|file| file.to_str())
                .and_then(|file| file.strip_prefix(name))
                .is_some_and(|rest| rest.starts_with("-2"))
        })
        .collect();
    paths.sort();
    paths
}

/// The newest finished record of a study with these options in the usual folder.
pub fn finished(name: &str, source: &Source, options: &PlanOptions) -> Option<PathBuf> {
    let is_finished = |path: &PathBuf| {
        same_execution(path, source, options)
            .is_some_and(|(_, status)| status == ExecutionStatus::Finished)
    };
    records_of(name).into_iter().rev().find(is_finished)
}

/// The newest finished simulation of a study as it is written, however often repeated.
pub fn simulated(name: &str, source: &Source) -> Option<PathBuf> {
    let is_wanted = |path: &PathBuf| {
        let recorded = Record::open_read_only(path).ok().filter(is_simulated)?;
        let (study, options) = recorded_study(&recorded.manifest().plan).ok()?;
        let as_written = PlanOptions {
            repeats: options.repeats,
            out: options.out.clone(),
            ..PlanOptions::default()
        };
        let is_finished = recorded.execution().ok()?.status == ExecutionStatus::Finished;
        Some(is_finished && study.text == source.text && options == as_written)
    };
    records_of(name).into_iter().rev().find(|path| is_wanted(path) == Some(true))
}

fn is_simulated(record: &Record) -> bool {
    record.manifest().evidence == Evidence::Simulated
}

fn is_unfinished(path: &Path, source: &Source, options: &PlanOptions) -> bool {
    let Some((record, status)) = same_execution(path, source, options) else { return false };
    let started = SystemTime::UNIX_EPOCH + Duration::from_nanos(record.manifest().started_wall_ns);
    status != ExecutionStatus::Finished
        && SystemTime::now().duration_since(started).is_ok_and(|age| age < RESUMED_WITHIN)
}

/// A record of the same study with the same options, and how far it is.
fn same_execution(
    path: &Path,
    source: &Source,
    options: &PlanOptions,
) -> Option<(Record, ExecutionStatus)> {
    let record = Record::open_read_only(path).ok()?;
    // A simulation of the same study has none of its evidence.
    if is_simulated(&record) {
        return None;
    }
    let status = record.execution().ok()?.status;
    let (recorded, mut recorded_options) = recorded_study(&record.manifest().plan).ok()?;
    recorded_options.out.clone_from(&options.out);
    (recorded.text == source.text && recorded_options == *options).then_some((record, status))
}

/// A name that sorts by time: `quickstart-20261120-101500.sqlite`.
fn new_path(name: &str) -> PathBuf {
    let seconds =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    free_path(Path::new(FOLDER), name, seconds)
}

/// The name of this second, or of the next one that no record has: simulations may be done within one.
fn free_path(folder: &Path, name: &str, seconds: u64) -> PathBuf {
    let path = folder.join(format!("{name}-{}.{ENDING}", utc_timestamp(seconds)));
    if path.exists() { free_path(folder, name, seconds + 1) } else { path }
}

#[cfg(test)]
mod tests {
    use super::{Fresh, free_path, place};
    use crate::lab::Place;
    use underlay_study::{PlanOptions, Source};

    #[test]
    fn a_file_that_is_there_and_no_record_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notes.txt");
        let options = PlanOptions { out: Some(path.clone()), ..PlanOptions::default() };
        let source = Source { name: "s.toml".to_string(), text: String::new() };
        assert_eq!(
            place("s", &source, &options, Fresh::No).expect("free"),
            Place::New(path.clone())
        );
        std::fs::write(&path, "mine").expect("written");
        for fresh in [Fresh::No, Fresh::Yes] {
            let refused = place("s", &source, &options, fresh).expect_err("taken");
            assert_eq!(refused.code(), crate::exit_code::BAD_INPUT);
            assert!(
                refused.to_string().contains("already exists and is not an Underlay record"),
                "{refused}"
            );
        }
        assert_eq!(std::fs::read_to_string(&path).expect("read"), "mine");
    }

    #[test]
    fn a_second_record_of_one_second_has_a_later_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = free_path(folder.path(), "s", 0);
        std::fs::write(&first, "").expect("written");
        let second = free_path(folder.path(), "s", 0);
        assert!(second > first && !second.exists(), "{}", second.display());
    }
}

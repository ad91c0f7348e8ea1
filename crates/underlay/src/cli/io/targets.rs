//! The targets of a load: which may be overwritten, which files are created, and their removal.
//!
//! Nothing is opened for writing before every target was checked.

use super::options::LoadArguments;
use super::stop;
use crate::lab::block::{Medium, Place};
use crate::stop::{Stop, chain};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use underlay_blockio::signature::signatures;
use underlay_blockio::{Target, TargetKind, kind_of};
use underlay_core::Bytes;
use underlay_host::{HostError, Resource, StateDir, Teardown};
use underlay_workload::block::IoProfile;

/// Default size of a created file.
const SIZE: Bytes = Bytes::from_gib(1);
/// Space that must stay free after files were created.
const SPARE: Bytes = Bytes::from_mib(256);

/// What is to be done with a target, decided before any is touched.
enum Intent {
    Create(PathBuf),
    Read(PathBuf),
    Overwrite(PathBuf),
}

/// Opens the targets, hands them over, and removes what was created. Files to be kept are the user's from when `work` calls
/// the second argument: neither an error nor `clean` removes them then. Returned with the result: whether everything
/// could be removed.
pub fn with_targets<T>(
    options: &LoadArguments,
    profile: &IoProfile,
    work: impl FnOnce(&[Place], &dyn Fn()) -> Result<T, Stop>,
) -> Result<(T, Result<(), Stop>), Stop> {
    let host = |error: HostError| Stop::host(chain(&error));
    let intents = intents(options, profile)?;
    check_space(options, &intents)?;
    let state = StateDir::open().map_err(host)?;
    let teardown = Teardown::create(&state, "io").map_err(host)?;
    let created = RefCell::new(Vec::new());
    let keep = || {
        if options.keep {
            created.take().into_iter().for_each(|(path, ticket)| {
                teardown.forget(ticket);
                errln!("keeping {}", Path::display(path));
            });
        }
    };
    let outcome = open_all(options, profile, &intents, |path| {
        let ticket = teardown.register(Resource::File { path: path.to_path_buf() })?;
        created.borrow_mut().push((path, ticket));
        Ok(())
    })
    .and_then(|places| work(&places, &keep));
    let left = match teardown.unwind().first() {
        None => Ok(()),
        Some(left) => {
            Err(Stop::left_behind(format!("could not remove {}: {}", left.resource, left.reason)))
        }
    };
    Ok((outcome?, left))
}

fn intents(options: &LoadArguments, profile: &IoProfile) -> Result<Vec<Intent>, Stop> {
    let writes = options.writes(profile);
    let destroy: Vec<PathBuf> =
        options.destroy.iter().map(|path| canonical(path)).collect::<Result<_, Stop>>()?;
    let mut intents: Vec<Intent> = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for (number, given) in options.targets.iter().enumerate() {
        let path = canonical(given)?;
        if path.is_dir() {
            let name = format!("underlay-io-{}-{number}.data", std::process::id());
            intents.push(Intent::Create(path.join(name)));
            continue;
        }
        if seen.contains(&path) {
            return Err(Stop::bad_input(format!("{} is listed twice", given.display())));
        }
        let kind = kind_of(&path).map_err(|error| stop(&error))?;
        if writes {
            may_be_overwritten(&path, kind, destroy.contains(&path))?;
            intents.push(Intent::Overwrite(path.clone()));
        } else {
            intents.push(Intent::Read(path.clone()));
        }
        seen.push(path);
    }
    for path in &destroy {
        if !seen.contains(path) {
            return Err(Stop::bad_input(format!("--destroy {} is not a target", path.display()))
                .with_hint("list it as a target too, spelled exactly the same"));
        }
    }
    Ok(intents)
}

fn canonical(path: &Path) -> Result<PathBuf, Stop> {
    path.canonicalize().map_err(|error| {
        let stop = Stop::bad_input(format!("could not open {}: {error}", path.display()));
        match error.kind() {
            std::io::ErrorKind::NotFound => stop.with_hint(
                "give a folder (a file is created in it), or an existing file or device",
            ),
            _ => stop,
        }
    })
}

/// Whether the content of a target that was named may go.
fn may_be_overwritten(path: &Path, kind: TargetKind, allowed: bool) -> Result<(), Stop> {
    if allowed {
        return Ok(());
    }
    let remedy = format!("if it may be destroyed, add --destroy {}", path.display());
    match kind {
        TargetKind::File => Err(Stop::bad_input(format!(
            "the load writes and would destroy the content of {}",
            path.display()
        ))
        .with_hint(format!("{remedy}; or give a folder, where a file is created"))),
        TargetKind::BlockDevice => {
            let found = signatures(path).map_err(|error| stop(&error))?;
            if found.is_empty() {
                return Ok(());
            }
            Err(Stop::bad_input(format!("{} holds {}", path.display(), found.join(", ")))
                .with_hint(remedy))
        }
    }
}

/// Created files must fit, those in one file system together.
fn check_space(options: &LoadArguments, intents: &[Intent]) -> Result<(), Stop> {
    let mut wanted: Vec<(u64, PathBuf, u64)> = Vec::new();
    for intent in intents {
        let Intent::Create(path) = intent else { continue };
        let folder = path.parent().expect("a file in a folder").to_path_buf();
        let device =
            std::fs::metadata(&folder).map(|data| std::os::unix::fs::MetadataExt::dev(&data));
        let device = device.map_err(|error| {
            Stop::bad_input(format!("could not look at {}: {error}", folder.display()))
        })?;
        let size = options.size.unwrap_or(SIZE).0;
        match wanted.iter_mut().find(|(known, _, _)| *known == device) {
            Some((_, _, sum)) => *sum += size,
            None => wanted.push((device, folder, size)),
        }
    }
    for (_, folder, size) in wanted {
        let free = underlay_host::free_space(&folder).map_err(|error| Stop::host(chain(&error)))?;
        if free.0 < size + SPARE.0 {
            return Err(Stop::host(format!(
                "{} has {free} free; {} plus a reserve of {SPARE} does not fit",
                folder.display(),
                Bytes(size)
            ))
            .with_hint("choose a smaller --size"));
        }
    }
    Ok(())
}

fn open_all<'a>(
    options: &LoadArguments,
    profile: &IoProfile,
    intents: &'a [Intent],
    mut register: impl FnMut(&'a Path) -> Result<(), HostError>,
) -> Result<Vec<Place>, Stop> {
    let caching = options.caching();
    let mut places = Vec::new();
    for intent in intents {
        let (target, path, created) = match intent {
            Intent::Create(path) => {
                register(path).map_err(|error| Stop::host(chain(&error)))?;
                let size = options.size.unwrap_or(SIZE);
                (Target::create_with(path, size, caching), path, true)
            }
            Intent::Read(path) => (Target::open_to_read(path, caching), path, false),
            Intent::Overwrite(path) => (Target::open_to_write(path, caching), path, false),
        };
        let target = target.map_err(|error| stop(&error))?;
        // Whole MiB, so that requests of every size end where it ends.
        let working_set =
            Bytes(options.size.unwrap_or(target.size()).min(target.size()).0 >> 20 << 20);
        if let Some(problem) = profile.problems(working_set).first() {
            return Err(Stop::bad_input(problem.to_string()).with_hint("choose a larger --size"));
        }
        places.push(Place { medium: Medium::of(path), target, working_set, created });
    }
    Ok(places)
}

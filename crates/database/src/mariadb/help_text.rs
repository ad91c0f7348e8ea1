//! What the server program says of its settings, with `--verbose --help`. Which values are good is not decided here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use underlay_host::{HostError, ProgramSpec, User, run_program_with};

use super::install::Install;

/// The one spelling of a name: the server takes dashes for underscores, any case, and a `loose_` before
/// what it may not know.
pub(crate) fn canonical(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("loose_").map_or(name.clone(), str::to_string)
}

impl Install {
    /// The names of all its settings; `None` if the program does not tell.
    pub fn setting_names(&self) -> Option<BTreeSet<String>> {
        setting_names(self).ok().filter(|names| !names.is_empty())
    }
}

/// The names of all its settings.
pub(crate) fn setting_names(install: &Install) -> Result<BTreeSet<String>, HostError> {
    let text = ask(install, None, &[], "exec \"$0\" \"$@\" 2>/dev/null")?;
    // A table follows the descriptions: the name, then its value.
    let (_, table) = text.split_once("\n-----").unwrap_or(("", &text));
    Ok(table
        .lines()
        .skip(1)
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| line.split_ascii_whitespace().next())
        .map(canonical)
        .collect())
}

/// What the server says to `--help` with these settings: it parses them all, and ends. `shell` says which
/// of its outputs is wanted.
pub(super) fn ask(
    install: &Install,
    run_as: Option<&User>,
    settings: &[(&String, &String)],
    shell: &str,
) -> Result<String, HostError> {
    let mut args: Vec<OsString> = vec!["-c".into(), shell.into()];
    args.extend([install.program.clone().into(), "--no-defaults".into()]);
    args.extend(settings.iter().map(|(name, value)| format!("--{name}={value}").into()));
    args.extend(["--verbose".into(), "--help".into()]);
    run_program_with(&ProgramSpec {
        program: Path::new("/bin/sh"),
        args,
        env: Vec::new(),
        run_as,
        working_dir: Path::new("/"),
    })
}

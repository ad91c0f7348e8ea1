//! `underlay clean`: removes resources that killed runs left behind on this host, and nothing else.

use crate::stop::Stop;
use clap::Args;
use underlay_host::{StateDir, clean};

/// Arguments of `underlay clean`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// Also remove templates (loaded databases that later runs would reuse).
    #[arg(long)]
    templates: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    let state = StateDir::open().map_err(|error| Stop::host(crate::stop::chain(&error)))?;
    let report = clean(&state).map_err(|error| Stop::host(crate::stop::chain(&error)))?;
    let mut removed = report.removed;
    if arguments.templates && state.templates_dir().exists() {
        std::fs::remove_dir_all(state.templates_dir()).map_err(|error| {
            Stop::left_behind(format!(
                "could not remove {}: {error}",
                state.templates_dir().display()
            ))
        })?;
        removed.push(format!("templates in {}", state.templates_dir().display()));
    }
    if arguments.json {
        let value = serde_json::json!({
            "removed": removed,
            "in-use": report.skipped_alive,
            "failed": report.failed,
        });
        outln!("{value:#}");
    } else {
        for line in &removed {
            outln!("removed {line}");
        }
        for line in &report.skipped_alive {
            outln!("in use  {line}");
        }
        if removed.is_empty() && report.failed.is_empty() {
            outln!("nothing to remove");
        }
    }
    if report.failed.is_empty() {
        Ok(())
    } else {
        Err(Stop::left_behind(format!("could not remove: {}", report.failed.join("; "))).with_hint(
            "find the process that holds it (`fuser -vm PATH`, `losetup -a`), then run `underlay clean` again",
        ))
    }
}

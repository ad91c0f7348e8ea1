//! Turning a record into what people read: shared by `run`, `show`, `report` and `compare`.

use crate::cli::studies::Form;
use crate::cli::terminal;
use crate::cli::whole_file;
use crate::stop::{Stop, chain};
use std::path::Path;
use std::process::{Command, Stdio};
use underlay_record::{ReadError, Record};
use underlay_report::atlas::ATLAS_FORMAT;
use underlay_report::{Analysis, Atlas, Colour, analyse, atlas_html, html, terminal_summary};

/// Opens a record.
pub fn open(path: &Path) -> Result<Record, Stop> {
    Record::open_read_only(path).map_err(|error| Stop::bad_input(chain(&error)))
}

/// Reads and analyses a record.
pub fn read(path: &Path) -> Result<Analysis, Stop> {
    let record = open(path)?;
    analyse(&record).map_err(|error| unreadable(&error, path))
}

/// What ends because of a record that does not hold what it should.
pub fn unreadable(error: &ReadError, record: &Path) -> Stop {
    Stop::bad_input(format!("could not read the record `{}`: {}", record.display(), chain(error)))
}

/// Prints the answer on standard output.
pub fn print(analysis: &Analysis, form: Form) -> Result<(), Stop> {
    match form {
        Form::Json => {
            let json =
                serde_json::to_string_pretty(analysis).map_err(|error| Stop::internal(&error))?;
            outln!("{json}");
        }
        Form::Text => {
            let colour = if terminal::colours_on_stdout() { Colour::Always } else { Colour::Never };
            out!("{}", terminal_summary(analysis, terminal::width(), colour));
        }
    }
    Ok(())
}

/// Writes the report as one HTML file.
pub fn write_report(analysis: &Analysis, path: &Path) -> Result<(), Stop> {
    let page = html(analysis).map_err(|error| Stop::internal(&error))?;
    whole_file::write(path, |file| file.write_all(page.as_bytes()))
}

/// Reads an atlas that was printed as JSON.
pub fn read_atlas(path: &Path) -> Result<Atlas, Stop> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::bad_input(format!("could not read {shown}: {error}")))?;
    let refused = |why: String| {
        Stop::bad_input(format!("`{shown}` is not an atlas of this version: {why}"))
            .with_hint("write one with `underlay reproduce --json`")
    };
    let atlas: Atlas = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    match atlas.format {
        ATLAS_FORMAT => Ok(atlas),
        other => Err(refused(format!("its format is {other} instead of {ATLAS_FORMAT}"))),
    }
}

/// Writes an atlas as one HTML file.
pub fn write_atlas(atlas: &Atlas, path: &Path) -> Result<(), Stop> {
    let page = atlas_html(atlas).map_err(|error| Stop::internal(&error))?;
    whole_file::write(path, |file| file.write_all(page.as_bytes()))
}

/// Shows a file in the user's browser.
pub fn open_in_browser(path: &Path) -> Result<(), Stop> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    Command::new(opener)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
        .map_err(|error| {
            Stop::host(format!("could not start `{opener}`: {error}"))
                .with_hint(format!("open {} yourself", path.display()))
        })
}

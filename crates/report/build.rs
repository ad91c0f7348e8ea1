//! Builds the page of the report (`web/`) into `OUT_DIR`, where `html.rs` embeds it.
//!
//! Runs `npm ci` when the installed packages are older than the lock file, then `npm run build`. Cargo
//! runs this program only when something in `web/` has changed, so an unchanged page costs nothing.
//!
//! What it deliberately does not do: check types or run the tests of the page (`npm test` in `web/`),
//! install Node.js, or fall back to a page without charts.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

/// What the bundle is made of, relative to `web/`.
const SOURCES: [&str; 6] =
    ["src", "build.mjs", "package.json", "package-lock.json", "tsconfig.json", ".npmrc"];
/// What the bundle consists of.
const OUTPUTS: [&str; 2] = ["report.js", "report.css"];

const REMEDY: &str = "install Node.js 18 or newer with npm (Debian, Ubuntu: apt-get install nodejs npm; \
                      `make test` does it)";

fn main() -> ExitCode {
    let web = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("web");
    let out = PathBuf::from(variable("OUT_DIR"));
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    match install(&web).and_then(|()| bundle(&web, &out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("cargo::error=the page of the report could not be built: {message}");
            ExitCode::FAILURE
        }
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// Installs the packages of the lock file, unless that was done after its last change.
fn install(web: &Path) -> Result<(), String> {
    // npm writes this file at the end of each installation.
    let installed = modified(&web.join("node_modules/.package-lock.json"));
    if installed.is_some() && installed >= modified(&web.join("package-lock.json")) {
        return Ok(());
    }
    npm(web, &["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"])
}

fn bundle(web: &Path, out: &Path) -> Result<(), String> {
    let folder = out.to_str().ok_or_else(|| {
        format!("the folder {} is not valid UTF-8: build elsewhere", out.display())
    })?;
    npm(web, &["run", "--silent", "build", "--", folder])?;
    match OUTPUTS.iter().find(|name| !out.join(name).is_file()) {
        None => Ok(()),
        Some(name) => Err(format!("`npm run build` wrote no {name}: see web/build.mjs")),
    }
}

fn npm(web: &Path, arguments: &[&str]) -> Result<(), String> {
    let command = format!("npm {}", arguments.join(" "));
    let output = Command::new("npm")
        .args(arguments)
        .current_dir(web)
        .output()
        .map_err(|error| format!("npm could not be started ({error}): {REMEDY}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    // A directive to cargo is one line.
    let text = String::from_utf8_lossy(&text).trim().replace('\n', " | ");
    let folder = web.display();
    Err(format!(
        "`{command}` in {folder} failed: {text} | the package registry must be reachable, and Node.js be \
         version 18 or newer"
    ))
}

//! The report in a real browser: runs the tests of `web/` on pages rendered here.
//!
//! They need Chromium; without it the tests of `web/` skip what they must and say so. `UNDERLAY_KEEP_PAGES=FOLDER` keeps the
//! pages, for looking at them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::Size;
use crate::figures;

/// The test files; a folder as argument means different things to different versions of Node.js.
fn tests(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder of tests can be read");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a readable entry").path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    assert!(!files.is_empty(), "no tests in {}", folder.display());
    files
}

#[test]
fn the_page_passes_its_own_tests() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    if !web.join("node_modules/playwright-core").is_dir() {
        eprintln!(
            "skip: the packages of the page are not installed: run `npm ci` in {}",
            web.display()
        );
        return;
    }
    let temporary = tempfile::tempdir().expect("a temporary folder can be made");
    let kept = env::var_os("UNDERLAY_KEEP_PAGES").map(PathBuf::from);
    let pages = kept.unwrap_or_else(|| temporary.path().to_path_buf());
    let sizes = [
        ("report.html", Size { series: 13, buckets: 400, runs: 10 }),
        ("small.html", Size { series: 5, buckets: 60, runs: 10 }),
        ("large.html", Size { series: 60, buckets: 1800, runs: 2 }),
    ];
    for (name, size) in sizes {
        let page = underlay_report::html(&crate::example::analysis(size))
            .expect("the example can be written");
        fs::write(pages.join(name), page).expect("the folder can be written to");
    }
    let atlas = crate::example::atlas(Size { series: 9, buckets: 30, runs: 10 });
    let page = underlay_report::atlas_html(&atlas).expect("the example can be written");
    fs::write(pages.join("atlas.html"), page).expect("the folder can be written to");
    for (name, analysis) in figures::pages() {
        let page = underlay_report::html(&analysis).expect("a page can be written");
        fs::write(pages.join(name), page).expect("the folder can be written to");
    }
    let output = Command::new("node")
        .arg("--test")
        .args(tests(&web.join("tests")))
        .current_dir(&web)
        .env("UNDERLAY_RENDERED_PAGES", &pages)
        .output()
        .expect("node is there: the page was built with it");
    let (text, remarks) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for line in text.lines().chain(remarks.lines()).filter(|line| line.contains("skip: ")) {
        eprintln!("{}", line.trim_start_matches(['#', ' ']));
    }
    assert!(output.status.success(), "the tests of {} failed:\n{text}\n{remarks}", web.display());
}

//! The documentation against the repository and the program: links lead somewhere, commands use
//! options that exist, pages stay readable, the table of published ratios is that of the atlas, and the exit codes are those
//! of the program. It does not judge what the pages say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The longest line of prose. Tables, code and headings cannot be wrapped.
const LINE_CHARACTERS: usize = 100;
/// The longest sentence in README and `docs/`.
const SENTENCE_WORDS: usize = 25;
/// The map has to fit a reader's head.
const ARCHITECTURE_BYTES: u64 = 10_000;

#[test]
fn links_lead_to_files_and_headings() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("the page is readable");
        for target in prose(&text).lines().flat_map(links) {
            if target.contains("://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let linked = match file {
                "" => page.clone(),
                file => page.parent().expect("a page is in a folder").join(file),
            };
            let found = match anchor {
                "" => linked.exists(),
                anchor => std::fs::read_to_string(&linked)
                    .is_ok_and(|text| headings(&text).contains(anchor)),
            };
            if !found {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

/// Whether a cell such as `1.98x` or `-5 %` is this number, as precisely as the cell says.
fn is_rounded(cell: &str, number: Option<f64>) -> bool {
    let cell = cell.trim_end_matches(['x', '%', ' ']);
    let (Ok(shown), Some(number)) = (cell.parse::<f64>(), number) else {
        return cell == "-" && number.is_none();
    };
    let digits = cell.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
    (shown - number).abs() <= 0.5001 * 10_f64.powi(-digits)
}

#[test]
fn the_table_of_published_ratios_is_that_of_the_atlas() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("it is readable");
    let page = read("docs/published-experiments.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let atlas: serde_json::Value = serde_json::from_str(&read("docs/atlas.json")).expect("JSON");
    let mut expected = 0;
    for experiment in atlas["experiments"].as_array().expect("experiments") {
        let study = experiment["name"].as_str().expect("a name");
        let ratios = experiment["ratios"].as_array().expect("ratios").iter();
        for ratio in ratios.filter(|ratio| ratio["is_headline"] == true) {
            expected += 1;
            let of = |key: &str| ratio[key].as_f64();
            let error = of("error").map(|error| error * 100.0);
            let is_row = |row: &&Vec<&str>| {
                row.len() == 6
                    && row[0].split(' ').next() == Some(&format!("`{study}`"))
                    && row[1].contains("(given)") == (ratio["is_given"] == true)
                    && row[1].contains("(host-limited)") == (ratio["is_host_limited"] == true)
                    && is_rounded(row[2], of("published"))
                    && is_rounded(row[3], of("ours"))
                    && is_rounded(row[4], error)
                    && is_rounded(row[5], of("simulated"))
            };
            assert!(rows.iter().any(|row| is_row(&row)), "{study} has no such row: {ratio:#}");
        }
    }
    assert_eq!(rows.len(), expected, "rows of the table, headline ratios of the atlas");
}

/// Each code that the program declares, once and in the same order, and no other one.
#[test]
fn the_reference_lists_the_exit_codes_that_are_declared() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("it is readable");
    let page = read("docs/reference.md");
    let (_, section) = page.split_once("\n## Exit codes\n").expect("a section");
    let section = section.lines().take_while(|line| !line.starts_with('#'));
    // Without the head of the table and the line below it.
    let rows = section.filter(|line| line.starts_with('|')).skip(2);
    let codes_of_page: Vec<u8> = rows
        .map(|row| {
            let cell = row.trim_start_matches('|').split('|').next().unwrap_or_default();
            cell.trim().parse::<u8>().unwrap_or_else(|_| panic!("no exit code: {row}"))
        })
        .collect();
    let codes_of_table = underlay::exit_code::TABLE.map(|(code, _)| code);
    assert_eq!(codes_of_page, codes_of_table, "codes of the page, codes of the table");

    // The table is what `--help` prints; a constant could be missing there.
    let source = read("crates/underlay/src/exit_code.rs");
    let constants: Vec<u8> = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub const ")?.split_once(": u8 = "))
        .map(|(name, code)| {
            let code = code.trim_end_matches(';').parse::<u8>();
            code.unwrap_or_else(|_| panic!("{name} has no code"))
        })
        .collect();
    assert_eq!(constants, codes_of_table, "codes of the constants, codes of the table");
}

#[test]
fn paths_in_the_text_exist() {
    let mut missing = Vec::new();
    for page in pages() {
        // Decisions tell of what was there on their date.
        if page.parent().is_some_and(|folder| folder.ends_with("decisions")) {
            continue;
        }
        let text = std::fs::read_to_string(&page).expect("the page is readable");
        for path in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let is_ours = ["crates/", "docs/", "scripts/"].iter().any(|top| path.starts_with(top));
            // Capitals stand for a name of the reader's.
            let is_general = path.contains(|letter: char| letter.is_uppercase() || letter == ' ');
            if is_ours && !is_general && !root().join(path).exists() {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "paths that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn commands_use_options_that_exist() {
    let mut unknown = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("the page is readable");
        for command in commands(&text) {
            let words: Vec<&str> = command.split_whitespace().skip(1).collect();
            let help = help(&words);
            if help.is_empty() {
                unknown.push(format!("{}: no such command: `{command}`", page.display()));
            }
            for option in words.iter().filter_map(|word| word.strip_prefix("--")) {
                let name = option.split('=').next().unwrap_or(option);
                if !help.contains(&format!("--{name}")) {
                    unknown.push(format!("{}: no --{name}: `{command}`", page.display()));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "commands that the program does not know:\n{}", unknown.join("\n"));
}

#[test]
fn pages_stay_readable() {
    let mut problems = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("the page is readable");
        if text.starts_with("# What is recorded") {
            continue; // generated from the declarations of samplers
        }
        let prose = prose(&text);
        for line in prose.lines().filter(|line| !line.starts_with('#')) {
            if line.chars().count() > LINE_CHARACTERS {
                problems.push(format!("{}: long line: {line}", page.display()));
            }
        }
        if page.parent().is_some_and(|folder| folder.ends_with("decisions")) {
            continue;
        }
        for sentence in sentences(&prose) {
            if sentence.split_whitespace().count() > SENTENCE_WORDS {
                problems.push(format!("{}: long sentence: {sentence}", page.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let map = std::fs::metadata(root().join("ARCHITECTURE.md")).expect("the map is there");
    assert!(map.len() <= ARCHITECTURE_BYTES, "ARCHITECTURE.md has {} bytes", map.len());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Code in comments is compiled by nobody, so it would rot: examples are tests.
#[test]
fn comments_hold_no_code_that_looks_compiled() {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is readable").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.extend((!path.ends_with("web")).then_some(path));
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("the file is readable");
            let comment = |line: &str| {
                let line = line.trim_start();
                let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
                text.trim().strip_prefix("```").map(str::to_string)
            };
            let begins = text.lines().filter_map(comment).step_by(2);
            found.extend(begins.filter(|kind| kind != "text").map(|_| path.clone()));
        }
    }
    assert!(found.is_empty(), "examples that nobody compiles: {found:?}");
}

/// The pages at the top, in `docs/` and in `docs/decisions/`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        for entry in std::fs::read_dir(root().join(folder)).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    assert!(pages.len() > 10, "the documentation has moved");
    pages
}

/// `text` without code blocks and tables; the rest keeps its lines.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        if !fence && !in_code && !line.starts_with('|') {
            prose.push_str(line);
        }
        prose.push('\n');
    }
    prose
}

/// Targets of `[text](target)` in a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// The anchors of a page, as they are made from its headings.
fn headings(text: &str) -> BTreeSet<String> {
    let slug = |heading: &str| -> String {
        let kept = heading.trim().chars().filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            other if other.is_alphanumeric() => Some(other.to_ascii_lowercase()),
            _ => None,
        });
        kept.collect()
    };
    prose(text)
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| slug(line.trim_start_matches('#')))
        .collect()
}

/// Commands of this program in a page, in code blocks and in the text, without comments.
fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let mut in_code = false;
    let mut commands = Vec::new();
    for line in joined.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            let line = line.trim_start_matches("$ ");
            commands.push(line.split(" #").next().unwrap_or(line).trim());
        } else {
            commands.extend(line.split('`').skip(1).step_by(2));
        }
    }
    commands.retain(|command| command.starts_with("underlay "));
    commands.into_iter().map(String::from).collect()
}

/// The help of the innermost subcommand that `words` begin with; empty when they begin with none.
fn help(words: &[&str]) -> String {
    let mut before: Vec<&str> = Vec::new();
    let mut help = String::new();
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        // Any workload stands for the one that the reader chooses.
        before.push(if *word == "WORKLOAD" { "tpcc" } else { word });
        let output = Command::new(env!("CARGO_BIN_EXE_underlay"))
            .args(&before)
            .arg("--help")
            .output()
            .expect("the program runs");
        // What follows a subcommand's arguments, such as an option's value, is refused.
        if !output.status.success() {
            break;
        }
        help = String::from_utf8_lossy(&output.stdout).into_owned();
    }
    help
}

/// Sentences of a page's prose: paragraphs and list items end one, too.
fn sentences(prose: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in prose.lines() {
        if line.trim().is_empty() || line.trim_start().starts_with(['*', '-', '#']) {
            paragraphs.push(String::new());
        }
        let last = paragraphs.last_mut().expect("there is a paragraph");
        last.push(' ');
        last.push_str(line.trim());
    }
    let mut sentences = Vec::new();
    for paragraph in paragraphs {
        let mut sentence = String::new();
        for word in paragraph.split_whitespace() {
            sentence.push_str(word);
            sentence.push(' ');
            if word.ends_with(['.', '!', '?', ':']) {
                sentences.push(std::mem::take(&mut sentence));
            }
        }
        sentences.push(sentence);
    }
    sentences
}

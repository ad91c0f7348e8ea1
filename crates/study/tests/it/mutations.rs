//! Mutated studies: whatever is done to a text, checking it neither panics nor refuses without a reason,
//! and every reason can be drawn.

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_oneof, proptest};
use proptest::sample::Index;
use underlay_study::{
    Colour, HostView, PlanOptions, Scale, Source, builtin_studies, check, plan_json, read,
    render_plan,
};

/// One act of vandalism.
#[derive(Clone, Debug)]
enum Mutation {
    DeleteLine(Index),
    DuplicateLine(Index),
    SwapLines(Index, Index),
    Truncate(Index),
    DeleteByte(Index),
    Insert(Index, &'static str),
    ReplaceNumber(Index, &'static str),
    ReplaceString(Index, &'static str),
    ReplaceKey(Index, &'static str),
}

/// Texts that have broken parsers before: quotes, brackets, other scripts, extremes.
const SPLINTERS: [&str; 22] = [
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    "#",
    "\n",
    "\r",
    ",",
    ".",
    "\u{0}",
    "\u{e9}",
    "\u{1f4be}",
    "[[design]]\n",
    "\"\"\"",
    "\t",
    "0x",
    "-",
    "nan",
    "\u{feff}",
];

const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "9223372036854775807",
    "18446744073709551616",
    "0xffffffffffffffffffff",
    "4294967296",
    "1.5",
    "true",
];

const STRINGS: [&str; 16] = [
    "\"\"",
    "\"0s\"",
    "\"18446744073709551615B\"",
    "\"9999999TiB\"",
    "\"1e9h\"",
    "\"-5s\"",
    "\"5124095h\"",
    "\"kingston-nvme\"",
    "\"/\"",
    "\"null\"",
    "\"hdd-7200\"",
    "\"\u{1f4be}\"",
    "[]",
    "{}",
    "[[1], [2]]",
    "2026-01-01",
];

const KEYS: [&str; 10] = [
    "name",
    "use",
    "capacity",
    "wal",
    "datastore",
    "path",
    "emulated",
    "devices",
    "overrides",
    "x",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let one_of = |texts: &'static [&'static str]| {
        (any::<Index>(), any::<Index>()).prop_map(move |(at, which)| (at, *which.get(texts)))
    };
    prop_oneof![
        at().prop_map(Mutation::DeleteLine),
        at().prop_map(Mutation::DuplicateLine),
        (at(), at()).prop_map(|(a, b)| Mutation::SwapLines(a, b)),
        at().prop_map(Mutation::Truncate),
        at().prop_map(Mutation::DeleteByte),
        one_of(&SPLINTERS).prop_map(|(at, text)| Mutation::Insert(at, text)),
        one_of(&NUMBERS).prop_map(|(at, text)| Mutation::ReplaceNumber(at, text)),
        one_of(&STRINGS).prop_map(|(at, text)| Mutation::ReplaceString(at, text)),
        one_of(&KEYS).prop_map(|(at, text)| Mutation::ReplaceKey(at, text)),
    ]
}

fn mutated(text: &str, mutation: &Mutation) -> String {
    match mutation {
        Mutation::DeleteLine(at) => with_lines(text, |lines| {
            lines.remove(at.index(lines.len()));
        }),
        Mutation::DuplicateLine(at) => with_lines(text, |lines| {
            let at = at.index(lines.len());
            lines.insert(at, lines[at]);
        }),
        Mutation::SwapLines(a, b) => with_lines(text, |lines| {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }),
        Mutation::Truncate(at) => text[..boundary(text, at)].to_string(),
        Mutation::DeleteByte(at) => {
            let at = boundary(text, at);
            let rest: String = text[at..].chars().skip(1).collect();
            format!("{}{rest}", &text[..at])
        }
        Mutation::Insert(at, splinter) => {
            let at = boundary(text, at);
            format!("{}{splinter}{}", &text[..at], &text[at..])
        }
        Mutation::ReplaceNumber(at, number) => {
            let is_number = |word: &str| word.trim_end_matches([',', ']']).parse::<f64>().is_ok();
            replace_word(text, at, number, is_number)
        }
        Mutation::ReplaceString(at, string) => {
            replace_word(text, at, string, |word| word.starts_with('"') && word.ends_with('"'))
        }
        Mutation::ReplaceKey(at, key) => replace_word(text, at, key, |word| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        }),
    }
}

fn with_lines(text: &str, change: impl FnOnce(&mut Vec<&str>)) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if !lines.is_empty() {
        change(&mut lines);
    }
    lines.join("\n")
}

fn boundary(text: &str, at: &Index) -> usize {
    let mut at = at.index(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Replaces one of the words, outside comments, for which `fits` holds.
fn replace_word(text: &str, at: &Index, new: &str, fits: impl Fn(&str) -> bool) -> String {
    let mut words = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or("");
        let mut start = None;
        for (index, c) in code.char_indices().chain([(code.len(), ' ')]) {
            match (c.is_whitespace(), start) {
                (false, None) => start = Some(index),
                (true, Some(begin)) => {
                    if fits(&code[begin..index]) {
                        words.push(offset + begin..offset + index);
                    }
                    start = None;
                }
                _ => {}
            }
        }
        offset += line.len();
    }
    if words.is_empty() {
        return text.to_string();
    }
    let word = at.get(&words).clone();
    format!("{}{new}{}", &text[..word.start], &text[word.end..])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn vandalism_is_survived(
        study in any::<Index>(),
        mutations in vec(mutation(), 1..5),
        divisor in prop_oneof![Just(1u32), 2..2000u32],
    ) {
        let mut text = study.get(builtin_studies()).text.clone();
        for mutation in &mutations {
            text = mutated(&text, mutation);
        }
        let source = Source { name: "mutated.toml".to_string(), text };
        let options = PlanOptions { scale: Some(Scale { divisor }), ..PlanOptions::default() };
        let host = HostView::unlimited();
        match check(&source, &options, &host) {
            Ok((_, plan)) => {
                prop_assert!(!render_plan(&plan, 80).is_empty());
                prop_assert!(plan_json(&plan).is_object());
                prop_assert!(!plan.schedule.is_empty());
                let least = if plan.workload.kind.block().is_some() { 1 } else { 3 };
                prop_assert!(plan.designs.iter().all(|design| design.volumes.len() >= least));
            }
            Err(problems) => {
                prop_assert!(!problems.as_slice().is_empty());
                prop_assert!(!problems.render(100, Colour::Ansi).is_empty());
                prop_assert!(!problems.to_json().is_null());
            }
        }
        if let Err(problems) = read(&source) {
            prop_assert!(!problems.as_slice().is_empty());
        }
    }
}

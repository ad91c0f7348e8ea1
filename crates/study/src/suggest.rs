//! "Did you mean": the known name nearest to what was typed.

/// The candidate that differs from `typed` by few typing errors, if there is one.
///
/// Few = at most a third of the longer word, and never more than three. Case, `_` and `-` do not count.
/// Next best is a name that begins with what was typed.
pub(crate) fn nearest<'a>(
    typed: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = fold(typed);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let begins = |candidate: &&str| typed.len() >= 3 && fold(candidate).starts_with(&typed);
    candidates
        .iter()
        .copied()
        .map(|candidate| (distance(&typed, &fold(candidate)), candidate))
        .filter(|(errors, candidate)| {
            *errors <= (typed.len().max(candidate.chars().count()) / 3).min(3)
        })
        .min_by_key(|(errors, _)| *errors)
        .map(|(_, candidate)| candidate)
        .or_else(|| candidates.iter().copied().find(begins))
}

/// The names as a list for a sentence: `a`, `b`, `c`.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut list: Vec<String> = Vec::new();
    // Two parts of a faulty study may have the same name.
    for name in names.into_iter().map(|name| format!("`{name}`")) {
        if !list.contains(&name) {
            list.push(name);
        }
    }
    list.join(", ")
}

fn fold(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == '_' { '-' } else { c }).collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &to) in b.iter().enumerate() {
            let substituted = last[j] + usize::from(from != to);
            let mut best = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = last;
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{listed, nearest};

    #[test]
    fn a_list_says_each_name_once() {
        assert_eq!(listed(["a", "a", "c"]), "`a`, `c`");
    }

    #[test]
    fn typing_errors_are_forgiven_and_other_words_are_not() {
        let keys = ["users", "repeats", "measure", "warm-up"];
        assert_eq!(nearest("user", keys), Some("users"));
        assert_eq!(nearest("warm_up", keys), Some("warm-up"));
        assert_eq!(nearest("warmup", keys), Some("warm-up"));
        assert_eq!(nearest("mesaure", keys), Some("measure"));
        assert_eq!(nearest("Repeats", keys), Some("repeats"));
        assert_eq!(nearest("hold", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("dc1500m", ["dc500m-1920", "dc1500m-960"]), Some("dc1500m-960"));
    }
}

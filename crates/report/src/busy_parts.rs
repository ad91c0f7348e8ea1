//! What the volumes of a cluster's host share, where requests occupy it nearly all the time: its storage stack, and its link to
//! the other hosts.
//!
//! Not here: devices, whose counters do not say how many requests they could serve at once.

use crate::analysis::BusyPart;
use crate::estimates::{by_run, over_runs};
use crate::observed::{HOST_PARTS, WindowFacts};
use crate::wording::{count, list, percent, sentence_case};
use std::collections::BTreeSet;

/// A part that is occupied for this share of the time is told: what comes to it waits.
const BUSY: f64 = 0.9;

/// The parts that are busy at one rung, over its runs; by kind, then host.
pub(crate) fn of(windows: &[&WindowFacts]) -> Vec<BusyPart> {
    let names: BTreeSet<&(usize, String)> =
        windows.iter().flat_map(|window| window.host_parts.keys()).collect();
    let share = |name: &(usize, String)| {
        over_runs(by_run(windows, |window| window.host_parts.get(name).copied()), None).value
    };
    let part = |name: &(usize, String)| {
        let share = share(name).filter(|share| *share >= BUSY)?;
        Some(BusyPart { kind: HOST_PARTS[name.0].1.to_string(), host: name.1.clone(), share })
    };
    names.into_iter().filter_map(part).collect()
}

/// `The storage stack of node-4 is 98 % busy on NVMe.` Nothing where no part is.
pub(crate) fn sentence(parts: &[BusyPart], title: &str) -> Option<String> {
    let texts: Vec<String> = parts
        .chunk_by(|a, b| a.kind == b.kind)
        .map(|alike| {
            let shares = || alike.iter().map(|part| part.share.min(1.0));
            let (low, high) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
            match alike {
                [only] => format!("the {} of {} is {} busy", only.kind, only.host, percent(high)),
                _ => format!(
                    "the {}s of {} are {} busy",
                    alike[0].kind,
                    count(alike.len() as u64, "host"),
                    match (percent(low), percent(high)) {
                        (low, high) if low == high => high,
                        (low, high) => format!("{} to {high}", low.trim_end_matches(" %")),
                    }
                ),
            }
        })
        .collect();
    (!texts.is_empty()).then(|| sentence_case(&format!("{} on {title}.", list(&texts))))
}

#[cfg(test)]
mod tests {
    use super::sentence;
    use crate::analysis::BusyPart;

    fn part(kind: &str, host: &str, share: f64) -> BusyPart {
        BusyPart { kind: kind.to_string(), host: host.to_string(), share }
    }

    #[test]
    fn parts_of_a_kind_are_told_together() {
        assert_eq!(sentence(&[], "NVMe"), None);
        let one = [part("storage stack", "node-4", 0.977)];
        let said = sentence(&one, "NVMe").expect("a sentence");
        assert_eq!(said, "The storage stack of node-4 is 98 % busy on NVMe.");
        let several = [
            part("storage stack", "node-1", 0.95),
            part("storage stack", "node-2", 1.02),
            part("receiving link", "node-1", 0.91),
        ];
        let said = sentence(&several, "NVMe").expect("a sentence");
        assert_eq!(
            said,
            "The storage stacks of 2 hosts are 95 to 100 % busy and the receiving link of node-1 is \
             91 % busy on NVMe."
        );
    }
}

//! What an answer names, and whether that is what was induced.

use serde_json::Value;

underlay_core::words! {
    /// How an answer compares with what was induced.
    pub enum Judgement: "judgement" {
        /// The name of what was induced.
        Right = "right",
        /// Two names whose elasticities are within 25 %, one of them right.
        Mixed = "mixed, one of them right",
        /// No name, or one that Underlay itself does not confirm.
        Unsure = "no confident name",
        /// A confident name of something else.
        Wrong = "confidently wrong",
        /// The run failed.
        Failed = "run failed",
    }
}

/// An answer.
pub struct Judged {
    /// The confident name: a word, two joined by `+`, or `-`.
    pub named: String,
    pub judgement: Judgement,
    /// The class from sampling, and its confidence.
    pub observed: String,
    /// The causal check in words.
    pub sentence: String,
}

impl Judged {
    /// Of a run that failed.
    pub fn failed(reason: &str) -> Judged {
        Judged {
            named: "failed".to_string(),
            judgement: Judgement::Failed,
            observed: String::new(),
            sentence: reason.to_string(),
        }
    }

    /// In one line.
    pub fn line(&self) -> String {
        format!(
            "{} - named {} (sampling: {}); {}",
            self.judgement, self.named, self.observed, self.sentence
        )
    }
}

/// Judges the answer of a record with one design and one rung. `expected`: the names that are right, in the words of the
/// causal check or, for what cannot be slowed, of the verdict from sampling.
pub fn judge(analysis: &Value, expected: &[&str]) -> Judged {
    let bottleneck = &analysis["bottlenecks"][0];
    let class = bottleneck["class"].as_str().unwrap_or("none");
    let confidence = bottleneck["confidence"].as_str().unwrap_or("none");
    let check = &analysis["causal_checks"][0];
    let by_experiment: Vec<&str> = check["class"]
        .as_str()
        .into_iter()
        .chain(check["tied"].as_array().into_iter().flatten().filter_map(Value::as_str))
        .collect();
    let named: Vec<&str> = match check["agreement"].as_str() {
        // Sampling and experiment agree: what limits is what the experiment names.
        Some("confirmed" | "by-experiment") => by_experiment,
        // Nothing contradicts what was observed, and nothing confirms it.
        Some("observed") | None if !matches!(class, "inconclusive" | "mixed" | "none") => {
            vec![class]
        }
        _ => Vec::new(),
    };
    let is_right = |name: &&str| expected.contains(name);
    let judgement = match named[..] {
        [] => Judgement::Unsure,
        [only] if is_right(&only) => Judgement::Right,
        // An observed name is as sure as its confidence.
        [_] if check["agreement"] == "observed"
            && confidence != "high"
            && confidence != "medium" =>
        {
            Judgement::Unsure
        }
        [_] => Judgement::Wrong,
        _ if named.iter().all(is_right) => Judgement::Right,
        _ if named.iter().any(is_right) => Judgement::Mixed,
        _ => Judgement::Wrong,
    };
    Judged {
        named: if named.is_empty() { "-".to_string() } else { named.join("+") },
        judgement,
        observed: format!("{class}, {confidence} confidence"),
        sentence: check["sentence"].as_str().unwrap_or("no causal check").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Judgement, judge};
    use serde_json::json;

    fn judged(class: &str, agreement: &str, by_experiment: &[&str]) -> (Judgement, String) {
        let analysis = json!({
            "bottlenecks": [{ "class": class, "confidence": "medium" }],
            "causal_checks": [{
                "class": by_experiment.first(),
                "tied": by_experiment.get(1..).unwrap_or_default(),
                "agreement": agreement,
                "sentence": "",
            }],
        });
        let found = judge(&analysis, &["log"]);
        (found.judgement, found.named)
    }

    #[test]
    fn only_a_confident_wrong_name_is_wrong() {
        let cases = [
            (("log", "confirmed", &["log"][..]), Judgement::Right, "log"),
            (("mixed", "by-experiment", &["log", "data-read"]), Judgement::Mixed, "log+data-read"),
            (("cpu", "not-confirmed", &["log"]), Judgement::Unsure, "-"),
            (("mixed", "by-experiment", &[]), Judgement::Unsure, "-"),
            (("cpu", "confirmed", &["cpu"]), Judgement::Wrong, "cpu"),
            (("lock", "observed", &["cpu"]), Judgement::Wrong, "lock"),
            (("inconclusive", "observed", &[]), Judgement::Unsure, "-"),
        ];
        for ((class, agreement, by_experiment), judgement, named) in cases {
            let found = judged(class, agreement, by_experiment);
            assert_eq!(found, (judgement, named.to_string()), "{class} {agreement}");
        }
    }
}

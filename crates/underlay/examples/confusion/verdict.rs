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

/// Judges what the answer of a record with one design and one rung names. `expected`: the names that are right, in the words of
/// the causal check or, for what cannot be slowed, of the verdict from sampling.
pub fn judge(analysis: &Value, expected: &[&str]) -> Judged {
    let bottleneck = &analysis["bottlenecks"][0];
    let class = bottleneck["class"].as_str().unwrap_or("none");
    let confidence = bottleneck["confidence"].as_str().unwrap_or("none");
    let check = &analysis["causal_checks"][0];
    let named = check["named"].as_array().into_iter().flatten();
    let named: Vec<&str> = named.filter_map(Value::as_str).collect();
    let is_right = |name: &&str| expected.contains(name);
    let judgement = match named[..] {
        [] => Judgement::Unsure,
        [only] if is_right(&only) => Judgement::Right,
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

    #[test]
    fn only_a_wrong_name_is_wrong() {
        let cases = [
            (&["log"][..], Judgement::Right, "log"),
            (&["log", "data-read"], Judgement::Mixed, "log+data-read"),
            (&[], Judgement::Unsure, "-"),
            (&["cpu"], Judgement::Wrong, "cpu"),
            (&["cpu", "data-read"], Judgement::Wrong, "cpu+data-read"),
        ];
        for (named, judgement, words) in cases {
            let analysis = json!({
                "bottlenecks": [{ "class": "mixed", "confidence": "low" }],
                "causal_checks": [{ "named": named, "sentence": "" }],
            });
            let found = judge(&analysis, &["log"]);
            assert_eq!((found.judgement, &*found.named), (judgement, words));
        }
        assert_eq!(judge(&json!({}), &["log"]).judgement, Judgement::Unsure);
    }
}

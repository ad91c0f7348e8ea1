//! Published results of block experiments, as small tables with their source.
//!
//! The tables are files in `builtin/published/`: lines of experiment, variant, metric, unit, value, quality and
//! source, separated by commas, which no field contains. `published` = as printed, `untangled` = put in order
//! again after a machine translation and proven by an identity, `calculated` = by a printed ratio.

/// One published result.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedNumber {
    /// The experiment: `KH1-4k`.
    pub experiment: String,
    /// Which of its systems: `nvme`.
    pub variant: String,
    /// What was measured: `iops`, `latency`, `throughput`, ...
    pub metric: String,
    /// Unit of the value.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// How sure it is.
    pub quality: String,
    /// Document and place.
    pub source: String,
}

const FILES: [(&str, &str); 3] = [
    ("kingston", include_str!("../builtin/published/kingston.csv")),
    ("storagereview", include_str!("../builtin/published/storagereview.csv")),
    ("vmware", include_str!("../builtin/published/vmware.csv")),
];

const HEADER: &str = "experiment,variant,metric,unit,value,quality,source";

/// The publications whose block experiments come with Underlay.
pub fn publications() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The results of one publication; none if it is not known.
pub fn published_numbers(publication: &str) -> Option<Vec<PublishedNumber>> {
    let (_, text) = FILES.iter().find(|(name, _)| *name == publication)?;
    let rows = text.lines().filter(|line| !line.starts_with('#') && *line != HEADER);
    // Embedded files are part of the program; the tests read each of them.
    Some(rows.map(|line| row(line).expect("embedded tables are well-formed")).collect())
}

fn row(line: &str) -> Option<PublishedNumber> {
    let fields: Vec<&str> = line.split(',').collect();
    let [experiment, variant, metric, unit, value, quality, source] = fields[..] else {
        return None;
    };
    Some(PublishedNumber {
        experiment: experiment.to_string(),
        variant: variant.to_string(),
        metric: metric.to_string(),
        unit: unit.to_string(),
        value: value.parse().ok().filter(|value: &f64| *value > 0.0)?,
        quality: quality.to_string(),
        source: source.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::{publications, published_numbers, row};
    use std::collections::BTreeSet;

    #[test]
    fn every_table_reads_and_names_nothing_twice() {
        for publication in publications() {
            let numbers = published_numbers(publication).expect("listed");
            let keys: BTreeSet<_> = numbers
                .iter()
                .map(|number| (&number.experiment, &number.variant, &number.metric))
                .collect();
            assert_eq!(keys.len(), numbers.len(), "{publication}");
            assert!(numbers.iter().all(|number| !number.source.is_empty()));
        }
        assert!(published_numbers("nobody").is_none());
        assert!(row("a,b,c,d,x,published,s").is_none() && row("a,b").is_none());
    }

    #[test]
    fn printed_identities_hold() {
        // Requests in flight = rate x latency: 256 in all three of VMware's configurations, within rounding.
        let numbers = published_numbers("vmware").expect("listed");
        let value = |experiment: &str, metric: &str| {
            let found = numbers.iter().find(|n| n.experiment == experiment && n.metric == metric);
            found.expect("in the table").value
        };
        for experiment in ["V1-1", "V1-2", "V1-3"] {
            let in_flight = value(experiment, "iops") * value(experiment, "latency") / 1e3;
            assert!((in_flight / 256.0 - 1.0).abs() < 0.04, "{experiment}: {in_flight}");
        }
    }
}

//! Entries of the atlas: what they take from the study at the size of the publication.

use std::collections::BTreeMap;

use underlay_report::Analysis;
use underlay_report::analysis::{EvidenceKind, Published, Validity};
use underlay_report::atlas::{FullSize, LineOrigin, SimulatedPoint, entry};

use crate::example::{Size, analysis, rate_curves};

#[test]
fn designs_are_called_as_in_the_publication_beside_a_simulation_of_its_size() {
    let analysis = analysis(Size { series: 0, buckets: 0, runs: 0 });
    let designs = || analysis.designs.iter().map(|design| design.name.clone());
    let titles: BTreeMap<String, String> =
        designs().zip(["24 CPUs", "12 CPUs"].map(String::from)).collect();
    let point = |(design, value)| SimulatedPoint { design, metric: "tpm".into(), users: 8, value };
    let simulated = designs().zip([1_000.0, 500.0]).map(point).collect();
    let entry = entry(("paper/x1", ""), &analysis, &FullSize { titles, simulated }, None);
    let ratio = entry.ratios.iter().find(|ratio| ratio.simulated.is_some()).expect("a ratio");
    assert_eq!(ratio.text, "24 CPUs over 12 CPUs at 8 users");
    assert_eq!((ratio.ours, ratio.simulated), (Some(1.0), Some(2.0)));
}

#[test]
fn published_values_of_databases_have_bars_beside_ours() {
    let mut analysis = analysis(Size { series: 0, buckets: 0, runs: 0 });
    let of_all = analysis.published.iter().find(|series| series.metric == "tpm");
    let of_all = of_all.expect("a published series").clone();
    let design = of_all.design;
    let database = |name: &str, theirs, ours| Published {
        database: name.to_string(),
        users: vec![8],
        values: vec![theirs],
        rungs: vec![Some(8)],
        ours: vec![ours],
        ..of_all.clone()
    };
    let databases = [database("one", 300.0, Some(30.0)), database("two", 150.0, None)];
    analysis.published.extend(databases);
    let entry = entry(("paper/x1", ""), &analysis, &FullSize::default(), None);
    let figure = entry.figures.last().expect("a figure");
    assert!(figure.title.ends_with(", by database"), "{}", figure.title);
    assert_eq!(figure.users, [8]);
    let lines: Vec<_> = figure.lines.iter().map(|line| (&*line.title, line.origin)).collect();
    let title = &analysis.designs[design].title;
    let (one, two) = (format!("one: {title}"), format!("two: {title}"));
    let expected =
        [(&*one, LineOrigin::Published), (&*one, LineOrigin::Ours), (&*two, LineOrigin::Published)];
    assert_eq!(lines, expected);
    assert_eq!(figure.lines[2].shape, [Some(0.5)], "as a multiple of the first");
    assert!(entry.ratios.iter().all(|ratio| !ratio.text.contains("one:")), "no ratio of the total");
}

#[test]
fn a_value_alone_has_no_shape() {
    let mut analysis = analysis(Size { series: 0, buckets: 0, runs: 0 });
    let series = analysis.published.iter().find(|series| series.metric == "tpm");
    let alone = Published {
        metric: "resync_iops".to_string(),
        users: vec![8],
        values: vec![1_500.0],
        rungs: vec![Some(8)],
        ours: vec![Some(20.0)],
        ..series.expect("a published series").clone()
    };
    analysis.published.push(alone);
    let entry = entry(("paper/x1", ""), &analysis, &FullSize::default(), None);
    let figure = entry.figures.last().expect("a figure");
    assert_eq!(figure.reference, "", "as a multiple of itself it would be 1, whatever it is");
    let values: Vec<_> = figure.lines.iter().map(|line| line.values[0]).collect();
    assert_eq!(values, [Some(1_500.0), Some(20.0)], "the values are there");
}

/// The example, in which these designs are host-limited at 8 users.
fn limited_at_8_users(designs: &[usize]) -> Analysis {
    let mut analysis = analysis(Size { series: 0, buckets: 0, runs: 0 });
    for row in &mut analysis.validity {
        if row.users == 8 && designs.contains(&row.design) {
            row.outcome = Validity::HostLimited;
        }
    }
    analysis
}

/// The ratios that are host-limited.
fn limited(analysis: &Analysis) -> Vec<String> {
    let entry = entry(("paper/x1", ""), analysis, &FullSize::default(), None);
    let ratios = entry.ratios.into_iter().filter(|ratio| ratio.is_host_limited);
    ratios.map(|ratio| ratio.text).collect()
}

#[test]
fn a_ratio_is_given_if_either_side_is() {
    let given = |designs: &[usize]| -> Vec<bool> {
        let mut analysis = analysis(Size { series: 0, buckets: 0, runs: 0 });
        for series in &mut analysis.published {
            series.given = designs.contains(&series.design);
        }
        let entry = entry(("paper/x1", ""), &analysis, &FullSize::default(), None);
        entry.ratios.iter().map(|ratio| ratio.is_given).collect()
    };
    let cases: [(&[usize], bool); 4] = [(&[], false), (&[0], true), (&[1], true), (&[0, 1], true)];
    for (designs, expected) in cases {
        let found = given(designs);
        assert!(!found.is_empty() && found.iter().all(|it| *it == expected), "{designs:?}");
    }
}

#[test]
fn what_is_not_given_is_the_headline() {
    let mut analysis = analysis(Size { series: 0, buckets: 0, runs: 0 });
    let more: Vec<Published> = analysis.published.clone();
    analysis.published[0].given = true;
    let of =
        |metric: &'static str| more.iter().cloned().map(move |series| (metric.to_string(), series));
    // Of one design there is no ratio, and of two there is one.
    for (metric, series) in of("cpu_idle").take(1).chain(of("p95")) {
        analysis.published.push(Published { metric, ..series });
    }
    let entry = entry(("paper/x1", ""), &analysis, &FullSize::default(), None);
    let headlines = entry.ratios.iter().filter(|ratio| ratio.is_headline);
    let metrics: Vec<&str> = headlines.map(|ratio| ratio.metric.as_str()).collect();
    assert_eq!(metrics, ["p95 response time"]);
}

#[test]
fn a_ratio_knows_whether_the_host_limited_one_of_its_designs() {
    assert!(limited(&limited_at_8_users(&[])).is_empty());
    let at_8_users = ["NVMe drive over SATA drive at 8 users"];
    assert_eq!(limited(&limited_at_8_users(&[0])), at_8_users);
    assert_eq!(limited(&limited_at_8_users(&[1])), at_8_users);
    let mut simulated = limited_at_8_users(&[0, 1]);
    simulated.study.evidence = EvidenceKind::Simulated;
    assert!(limited(&simulated).is_empty(), "the host limits nothing in virtual time");
}

#[test]
fn along_an_axis_one_point_may_reach_the_ceiling_of_the_host() {
    let along_axis = |limited: &[usize]| {
        let mut analysis = limited_at_8_users(limited);
        for design in &mut analysis.designs {
            design.of = "drive".to_string();
        }
        analysis
    };
    assert!(limited(&along_axis(&[0])).is_empty());
    assert_eq!(limited(&along_axis(&[0, 1])), ["NVMe drive over SATA drive at 8 users"]);
    let mut late = along_axis(&[]);
    for row in late.validity.iter_mut().filter(|row| row.users == 8) {
        row.late_share = Some(0.6);
    }
    assert_eq!(limited(&late), ["NVMe drive over SATA drive at 8 users"]);
}

#[test]
fn rate_curves_have_the_published_points_beside_ours() {
    let size = Size { series: 0, buckets: 0, runs: 0 };
    let blocks = rate_curves(size);
    let of_blocks = entry(("paper/x4", ""), &blocks, &FullSize::default(), None);
    let curves = of_blocks.curves.expect("published points");
    assert_eq!(curves.reference, blocks.designs[0].title);
    let lines: Vec<_> = curves.lines.iter().map(|line| (line.design, line.origin)).collect();
    let (published, ours) = (LineOrigin::Published, LineOrigin::Ours);
    assert_eq!(lines, [(0, published), (0, ours), (1, published), (1, ours)]);
    let points = |line: usize| -> Vec<(&str, f64, Option<f64>)> {
        let points = curves.lines[line].points.iter();
        points.map(|point| (&*point.label, point.rate, point.multiple)).collect()
    };
    assert_eq!(points(0), [("at 1 ms", 120e3, Some(0.75)), ("maximum", 160e3, Some(1.0))]);
    assert_eq!(points(2), [("maximum", 320e3, Some(2.0))], "it ends below 1 ms");
    // The overloaded point is left out.
    let labels: Vec<&str> = points(1).into_iter().map(|(label, _, _)| label).collect();
    assert_eq!(labels, ["10 %", "40 %", "70 %", "90 %", "100 %", "maximum"]);
    assert_eq!(points(3).last().map(|(_, _, multiple)| *multiple), Some(Some(2.25)));
    // Of a study without published points there is no figure.
    assert!(entry(("paper/x1", ""), &analysis(size), &FullSize::default(), None).curves.is_none());
}

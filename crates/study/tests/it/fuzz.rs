//! Damaged studies, device profiles and recorded plans: refused with a reason that can be drawn, or planned; never a panic.

use underlay_fuzz::fuzz;
use underlay_study::{
    Colour, HostView, PlanOptions, Scale, Source, builtin_designs, builtin_devices,
    builtin_studies, check, parse_profile, plan_json, recorded_study, render_plan,
};

const FAULTS: &str = r#"
name = "broken"
question = "What if?"
[volumes]
data = { capacity = "4GiB" }
wal = { capacity = "2GiB" }
backup = { capacity = "2GiB" }
[[design]]
use = "storagereview-optane"
name = "a"
[[design]]
use = "kingston-nvme"
name = "b"
[workload.tpcc]
warehouses = 8
[procedure]
users = [1, 4]
[[fault]]
kind = "hosts-partitioned"
hosts = ["node-1", "node-2"]
at = "1s"
lasts = "9s"
designs = ["a"]
[[fault]]
kind = "policy-change"
policy = { failures-to-tolerate = 0, stripe-width = 2 }
at = "20s"
users = 1
designs = ["a"]
[[fault]]
kind = "disk-group-added"
host = "node-1"
disk-group = { cache = "p4800x-375", capacity = ["p4500-2000"] }
at = "2s"
phase = "warm-up"
designs = ["a"]
[[fault]]
kind = "power-cut"
at = "30s"
lasts = "5s"
"#;

#[test]
fn studies() {
    let mut corpus: Vec<Vec<u8>> =
        builtin_studies().iter().map(|study| study.text.clone().into_bytes()).collect();
    corpus.push(FAULTS.as_bytes().to_vec());
    corpus.extend(builtin_designs().iter().map(|design| design.text.clone().into_bytes()));
    let eighth = PlanOptions { scale: Some(Scale { divisor: 8 }), ..PlanOptions::default() };
    fuzz(&corpus, |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let source = Source { name: "fuzz.toml".to_string(), text };
        for options in [&PlanOptions::default(), &eighth] {
            match check(&source, options, &HostView::unlimited()) {
                Ok((_, plan)) => {
                    render_plan(&plan, 80);
                    assert!(recorded_study(&plan_json(&plan)).is_ok());
                }
                Err(problems) => {
                    assert!(!problems.as_slice().is_empty());
                    problems.render(80, Colour::Plain);
                    problems.to_json();
                }
            }
        }
    });
}

#[test]
fn profiles_and_recorded_plans() {
    let mut corpus: Vec<Vec<u8>> =
        builtin_devices().iter().map(|device| device.text.clone().into_bytes()).collect();
    let source = builtin_studies()[0].source();
    let (_, plan) =
        check(&source, &PlanOptions::default(), &HostView::unlimited()).expect("shipped");
    corpus.push(plan_json(&plan).to_string().into_bytes());
    fuzz(&corpus, |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let source = Source { name: "fuzz.toml".to_string(), text };
        if let Err(problems) = parse_profile(&source) {
            problems.render(80, Colour::Plain);
        }
        if let Ok(value) = serde_json::from_slice(bytes)
            && let Ok((source, options)) = recorded_study(&value)
        {
            let _ = check(&source, &options, &HostView::unlimited());
        }
    });
}

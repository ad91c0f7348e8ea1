//! Adaptive resynchronisation on one time line: alone each has the device, below their share volumes get what they ask
//! for, and saturating both share it 75 to 80 and 20 to 25.

mod experiment;

use experiment::{STAGE_S, STAGES, asked_below_share, run};

#[test]
fn four_stages_are_seen_on_one_time_line() {
    let stages = run();
    assert_eq!(stages.seconds.len(), STAGES.len() * STAGE_S);
    for (stage, name) in STAGES.iter().enumerate() {
        let (vm, resync) = stages.rates(stage);
        println!("{name:32} {:6.0} MB/s {:6.0} MB/s", vm / 1e6, resync / 1e6);
    }
    // The time line says why: the host came back, and copying began.
    let told = |kind: &str| stages.seconds[STAGE_S].notices.iter().any(|(_, of, _)| *of == kind);
    assert!(told("fault") && told("resync"));
    assert!(stages.seconds.iter().all(|second| second.values.len() == stages.series.len()));
    let names = stages.seconds[STAGE_S - 1].latencies.iter().map(|(name, ..)| name.as_str());
    assert!(names.clone().any(|name| name.ends_with(".vm")), "{:?}", names.collect::<Vec<_>>());
    let (alone, none) = stages.rates(0);
    assert_eq!(none, 0.0, "nothing is copied yet");
    let (none, copying) = stages.rates(1);
    assert_eq!(none, 0.0, "nobody reads");
    // A SATA device gives about 540 MB/s to either.
    let most = alone.max(copying);
    assert!(alone > 0.95 * most && copying > 0.95 * most, "{alone} and {copying}");
    assert!((500e6..580e6).contains(&most), "{most}");
    let (vm, resync) = stages.rates(2);
    let asked = asked_below_share(alone);
    assert!((vm / asked - 1.0).abs() < 0.02, "{vm} of {asked}");
    assert!(vm + resync > 0.95 * most, "{vm} and {resync} of {most}");
    let (vm, resync) = stages.rates(3);
    let share = resync / (vm + resync);
    assert!((0.20..=0.25).contains(&share), "{share}");
    assert!(vm + resync > 0.95 * most, "{vm} and {resync} of {most}");
}

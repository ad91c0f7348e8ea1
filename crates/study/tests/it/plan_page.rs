//! The plan as people see it, for the shipped studies.

use underlay_core::Bytes;
use underlay_study::{
    DirectoryState, Enforcement, HostView, PlanOptions, Repeats, Scale, check, find_study,
    render_plan,
};

fn host() -> HostView<'static> {
    HostView {
        cpus: 4,
        memory: Bytes::from_gib(16),
        free_space: Bytes::from_gib(100),
        memory_limits: Enforcement::Unenforced {
            reason: "no control groups; boot with cgroup_enable=memory".to_string(),
        },
        cpu_limits: Enforcement::Enforced,
        directory: &|_| DirectoryState::Missing,
        servers: &|_, _| None,
    }
}

fn page(study: &str, options: &PlanOptions, width: usize) -> String {
    let source = find_study(study).expect("built in").source();
    let (_, plan) = check(&source, options, &host()).expect("shipped studies plan");
    render_plan(&plan, width)
}

#[test]
fn quickstart() {
    insta::assert_snapshot!(page("quickstart", &PlanOptions::default(), 100));
}

#[test]
fn example_with_options() {
    let options = PlanOptions {
        repeats: Some(Repeats::Exactly(1)),
        users: Some(vec![2, 8]),
        seed: Some(5),
        ..PlanOptions::default()
    };
    insta::assert_snapshot!(page("example", &options, 100));
}

#[test]
fn kingston_at_one_eighth() {
    let options = PlanOptions { scale: Some(Scale { divisor: 8 }), ..PlanOptions::default() };
    insta::assert_snapshot!(page("kingston/k2", &options, 120));
}

#[test]
fn first_test_of_kingston_at_one_sixteenth() {
    let options = PlanOptions { scale: Some(Scale { divisor: 16 }), ..PlanOptions::default() };
    insta::assert_snapshot!(page("kingston/k1", &options, 120));
}

//! Every study that comes with Underlay reads, checks and plans.

use underlay_core::{Bytes, Nanos};
use underlay_study::{
    Builtin, Colour, DirectoryState, Enforcement, HostView, Plan, PlanOptions, Scale,
    builtin_studies, check, find_study,
};

/// The smallest host the project promises anything for: two processors, 4 GiB, 40 GB free.
fn small_host() -> HostView<'static> {
    HostView {
        cpus: 2,
        memory: Bytes::from_gib(4),
        free_space: Bytes(40_000_000_000),
        memory_limits: Enforcement::Enforced,
        cpu_limits: Enforcement::Enforced,
        directory: &|_| DirectoryState::Missing,
        servers: &|_, _| None,
    }
}

fn planned(study: &Builtin, options: &PlanOptions, host: &HostView<'_>) -> Plan {
    match check(&study.source(), options, host) {
        Ok((_, plan)) => plan,
        Err(problems) => panic!("{}", problems.render(100, Colour::Plain)),
    }
}

fn planned_by_name(name: &str, options: &PlanOptions, host: &HostView<'_>) -> Plan {
    planned(find_study(name).expect("built in"), options, host)
}

#[test]
fn all_plan_on_a_large_host() {
    for study in builtin_studies() {
        let plan = planned(study, &PlanOptions::default(), &HostView::unlimited());
        assert_eq!(plan.name, study.name.replace('/', "-"));
        assert!(plan.designs.len() >= 2, "{} compares nothing", study.name);
        assert!(!plan.provenance.is_empty());
    }
}

#[test]
fn quickstart_fits_five_minutes_on_the_smallest_host() {
    let plan = planned_by_name("quickstart", &PlanOptions::default(), &small_host());
    assert!(plan.estimates.duration < Nanos::from_secs(300), "{}", plan.estimates.duration);
    assert!(plan.estimates.disk < Bytes::from_gib(5), "{}", plan.estimates.disk);
    // Reads must come from storage.
    assert!(plan.estimates.working_set_ratio.is_some_and(|ratio| ratio > 2.0));
    assert_eq!(plan.schedule.len(), 6);
    let designs: Vec<usize> = plan.schedule.iter().map(|run| run.design).collect();
    assert_eq!(designs, [0, 1, 1, 0, 0, 1]);
}

#[test]
fn the_paper_does_not_fit_a_laptop_and_says_at_which_scale_it_does() {
    let k2 = find_study("kingston/k2").expect("built in");
    let problems =
        check(&k2.source(), &PlanOptions::default(), &small_host()).expect_err("16 processors");
    let text = problems.render(100, Colour::Plain);
    assert!(text.contains("--scale 1/8"), "{text}");
    assert!(problems.as_slice().iter().all(|problem| problem.code.starts_with("larger-than")));

    let options = PlanOptions { scale: Some(Scale { divisor: 16 }), ..PlanOptions::default() };
    let plan = planned_by_name("kingston/k2", &options, &small_host());
    assert_eq!(plan.workload.warehouses, 75);
    assert_eq!(plan.procedure.users, [1, 2, 3, 6]);
    assert_eq!(plan.engine.cpus, Some(1.0));
    assert_eq!(plan.engine.memory_limit, Some(Bytes::from_gib(2)));
    assert_eq!(plan.engine.settings["shared_buffers"], "512MB");
    assert_eq!(plan.full_size.warehouses, 1200);
    assert_eq!(plan.full_size.users.last(), Some(&89));
}

#[test]
fn the_published_numbers_are_the_headline_of_the_paper() {
    let plan = planned_by_name("kingston/k2", &PlanOptions::default(), &HostView::unlimited());
    let at_89 = |design: &str| {
        let series = plan
            .published
            .iter()
            .find(|series| series.design == design && series.metric == "nopm")
            .expect("published");
        let last = series.users.iter().position(|users| *users == 89).expect("89 users");
        series.values[last]
    };
    let ratio = at_89("dc1500m") / at_89("5200eco");
    assert!((ratio - 2.33).abs() < 0.01, "{ratio}");
    assert_eq!(plan.published.len(), 9);
}

//! Time that is skipped leaves what simulated time would have left.

use crate::scenario::{device, postgresql, store, tpcc};
use underlay_core::{Bytes, Nanos, RootSeed};
use underlay_engine::{
    DatabaseResult, DemandProfile, EngineSpec, InnodbSettings, Load, Scenario, Simulation, Skip,
    Window,
};

const SECOND: Nanos = Nanos::from_secs(1);

fn simulation(scenario: &Scenario) -> Simulation<underlay_model::target::StoreTarget> {
    let target = store(&device("p4500-2000"), 1);
    let mut simulation = Simulation::new(scenario, target, RootSeed(3)).expect("a valid scenario");
    simulation.warm_by_load(10_000);
    simulation
}

fn window(measure: Nanos) -> Window {
    Window { warm_up: Nanos::ZERO, measure }
}

/// Transactions, page images, pages of checkpoints.
fn counts(database: &DatabaseResult) -> [f64; 3] {
    let images = database.log.images / 8192;
    [database.response().count(), images, database.writers.checkpoint_pages].map(|it| it as f64)
}

#[test]
fn windows_after_skipped_time_are_like_the_cycle_that_they_are_in() {
    let mut scenario = tpcc(20, 16, 4, Bytes::from_mib(256));
    postgresql(&mut scenario).max_wal_size = Bytes::from_mib(1_500);
    // Second by second, from the first checkpoint to the second one.
    let mut long = simulation(&scenario);
    let mut cycle = Vec::new();
    let mut begun = 0;
    while begun < 2 {
        let run = long.run(&window(SECOND));
        begun += run.databases[0].writers.checkpoints_forced;
        if begun == 1 {
            cycle.push(counts(&run.databases[0]));
        }
    }
    assert!((10..60).contains(&cycle.len()), "{cycle:?}");
    let mean = |number: usize| cycle.iter().map(|it| it[number]).sum::<f64>() / cycle.len() as f64;
    let whole: [f64; 3] = std::array::from_fn(mean);

    const PLACES: usize = 8;
    let mut sum = [0.0; 3];
    for place in 0..PLACES {
        let mut short = simulation(&scenario);
        short.run(&window(SECOND));
        let place = (place as f64 + 0.5) / PLACES as f64;
        let skip = Skip { rate_per_second: whole[0], place, transactions_at_most: 1_000_000 };
        let passed = short.skip(&[skip])[0];
        assert!((10_000..1_000_000).contains(&passed), "{passed}");
        let run = short.run(&Window { warm_up: SECOND, measure: SECOND });
        let found = counts(&run.databases[0]);
        sum = std::array::from_fn(|number| sum[number] + found[number] / PLACES as f64);
    }
    let names = ["transactions", "images", "checkpoint pages"];
    for (name, (short, whole)) in names.iter().zip(sum.iter().zip(whole)) {
        assert!((short / whole - 1.0).abs() < 0.15, "{name}: {short}, in the cycle {whole}");
    }

    let mut clean = simulation(&scenario);
    let run = clean.run(&Window { warm_up: SECOND, measure: SECOND });
    let [_, _, checkpoint] = counts(&run.databases[0]);
    assert_eq!(checkpoint, 0.0, "a window after a clean start has no checkpoint");
}

#[test]
fn a_cycle_by_time_takes_as_many_transactions_as_its_rate_says() {
    let mut scenario = tpcc(8, 4, 4, Bytes::from_mib(256));
    let settings = postgresql(&mut scenario);
    settings.max_wal_size = Bytes::from_gib(100);
    settings.checkpoint_timeout = Nanos::from_secs(100);
    let mut simulation = simulation(&scenario);
    simulation.run(&window(SECOND));
    let skip = Skip { rate_per_second: 200.0, place: 0.25, transactions_at_most: 1_000_000 };
    // What is left of the first cycle, and a quarter of the next one.
    let passed = simulation.skip(&[skip])[0];
    assert!((24_795..=24_805).contains(&passed), "{passed}");
    let few = Skip { transactions_at_most: 10, ..skip };
    let passed = simulation.skip(&[few])[0];
    assert!((10..=12).contains(&passed), "{passed}");
}

#[test]
fn innodb_has_no_cycle_but_dirty_pages_after_load() {
    let mut scenario = tpcc(8, 8, 4, Bytes::from_mib(256));
    let settings = InnodbSettings { buffer_pool_size: Bytes::from_gib(2), ..Default::default() };
    scenario.databases[0].engine = EngineSpec::Mariadb(settings);
    scenario.databases[0].demands = DemandProfile::tpcc_mariadb();
    let mut simulation = simulation(&scenario);
    let run = simulation.run(&window(Nanos::from_millis(1)));
    assert!(run.databases[0].unwritten.pool_pages > 1_000, "{:?}", run.databases[0].unwritten);
    let skip = Skip { rate_per_second: 1_000.0, place: 0.5, transactions_at_most: 1_000 };
    assert_eq!(simulation.skip(&[skip]), [0]);
}

#[test]
fn nothing_of_skipped_time_is_counted_and_users_go_on() {
    let mut scenario = tpcc(8, 80, 4, Bytes::from_mib(256));
    postgresql(&mut scenario).max_wal_size = Bytes::from_mib(200);
    // Most users pause.
    scenario.databases[0].load = Load::Closed { users: 80, pacing: 0.01 };
    let run = |skips| {
        let mut simulation = simulation(&scenario);
        let before = simulation.run(&window(SECOND));
        if skips {
            let skip = Skip { rate_per_second: 500.0, place: 0.0, transactions_at_most: 200_000 };
            assert!(simulation.skip(&[skip])[0] > 1_000);
            let nothing = &simulation.run(&window(Nanos::ZERO)).databases[0];
            assert_eq!((nothing.response().count(), nothing.log.inserted), (0, 0));
            assert_eq!((nothing.pool, nothing.writers), Default::default());
        }
        (before, simulation.run(&Window { warm_up: SECOND, measure: Nanos::from_secs(2) }))
    };
    let (skipped, plain) = (run(true), run(false));
    assert_eq!(skipped.0, plain.0);
    let count = |run: &underlay_engine::EngineRun| run.databases[0].response().count() as f64;
    assert!((count(&skipped.1) / count(&plain.1) - 1.0).abs() < 0.2, "paused users have a rate");
    assert_eq!(skipped, run(true), "equal seeds, equal numbers");
}

#[test]
fn few_transactions_stand_for_many() {
    let mut scenario = tpcc(20, 16, 4, Bytes::from_gib(1));
    let settings = postgresql(&mut scenario);
    settings.max_wal_size = Bytes::from_gib(3);
    settings.full_page_writes = false;
    let found = |transactions_at_most| {
        let mut simulation = simulation(&scenario);
        let rate_per_second =
            simulation.run(&window(SECOND)).databases[0].response().count() as f64;
        let skip = Skip { rate_per_second, place: 0.4, transactions_at_most };
        let passed = simulation.skip(&[skip])[0];
        let run = simulation.run(&Window { warm_up: SECOND, measure: Nanos::from_secs(4) });
        (passed, counts(&run.databases[0]))
    };
    let ((all, exact), (few, about)) = (found(10_000_000), found(40_000));
    assert!(all > 150_000 && few <= 50_000, "{all} {few}");
    for (number, name) in [(0, "transactions"), (2, "checkpoint pages")] {
        let ratio = about[number] / exact[number];
        assert!((0.85..1.15).contains(&ratio), "{name}: {about:?}, without compression {exact:?}");
    }
}

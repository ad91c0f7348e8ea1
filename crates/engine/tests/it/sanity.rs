//! What a reader would expect of the numbers, and that they repeat.

use crate::scenario::{device, postgresql, run, store, tpcc};
use underlay_core::{Arrivals, Bytes, Nanos, RootSeed};
use underlay_engine::result::Place;
use underlay_engine::{
    DatabaseSpec, EngineRun, Load, PostgresqlSettings, Scenario, Simulation, Window,
};

#[test]
fn equal_arguments_give_equal_results_and_other_seeds_others() {
    let scenario = tpcc(4, 8, 4, Bytes::from_mib(64));
    let first = run(&scenario, &device("p4500-2000"), 2);
    assert_eq!(first, run(&scenario, &device("p4500-2000"), 2));
    assert!(first.databases[0].committed() > 1_000, "{}", first.databases[0].committed());
}

#[test]
fn the_mix_and_the_rollbacks_are_the_workloads() {
    let run = run(&tpcc(4, 8, 4, Bytes::from_gib(1)), &device("p4500-2000"), 10);
    let database = &run.databases[0];
    let all = database.committed() as f64;
    let share = |kind: usize| database.types[kind].committed as f64 / all;
    // 10, 10, 1, 1 and 1 of 23 cards.
    for (kind, cards) in [10.0, 10.0, 1.0, 1.0, 1.0].into_iter().enumerate() {
        assert!((share(kind) - cards / 23.0).abs() < 0.01, "{kind}: {}", share(kind));
    }
    let orders = &database.types[0];
    let rolled_back = orders.rolled_back as f64 / (orders.rolled_back + orders.committed) as f64;
    assert!((0.005..0.015).contains(&rolled_back), "{rolled_back}");
}

#[test]
fn more_cores_help_until_the_log_limits() {
    let nopm = |cores, device_name| {
        let run = run(&tpcc(16, 16, cores, Bytes::from_gib(2)), &device(device_name), 5);
        run.headline(0)
    };
    let (one, four) = (nopm(1, "null"), nopm(4, "null"));
    assert!((3.5..=4.1).contains(&(four / one)), "{one} {four}");
    let slow = nopm(4, "extreme-pro-480");
    assert!(slow < four, "{slow} {four}");
}

/// With a device that takes no time, and everything cached, nothing but processors is waited for.
#[test]
fn processor_time_is_that_of_the_types_and_of_background_work() {
    const BACKGROUND: Nanos = Nanos::from_micros(300);
    let simulated = |background: Nanos, users: u32| {
        let mut scenario = tpcc(4, users, 2, Bytes::from_gib(2));
        scenario.databases[0].demands.background_cpu = background;
        run(&scenario, &device("null"), 5)
    };
    let per_transaction = |run: &EngineRun| {
        let types = &run.databases[0].types;
        let ended: u64 = types.iter().map(|kind| kind.committed + kind.rolled_back).sum();
        let of_types: u64 = types.iter().map(|kind| kind.cpu_ns).sum();
        [of_types as f64, run.hosts[0].used.done_ns - of_types as f64].map(|ns| ns / ended as f64)
    };
    let (without, with) = (simulated(Nanos::ZERO, 8), simulated(BACKGROUND, 8));
    let ([sessions, rest], [also, more]) = (per_transaction(&without), per_transaction(&with));
    assert!((also / sessions - 1.0).abs() < 0.02, "{sessions} {also}");
    // But for what is under way at the ends of the window.
    assert!(rest.abs() < sessions / 100.0, "hardly a page is written: {rest} of {sessions}");
    assert!(((more - rest) / BACKGROUND.0 as f64 - 1.0).abs() < 0.03, "{rest} {more}");
    // Two processors that are busy anyway have as much less time for sessions.
    let ratio = with.headline(0) / without.headline(0);
    let expected = (sessions + rest) / (also + more);
    assert!((ratio / expected - 1.0).abs() < 0.03, "{ratio} {expected}");
    // One user has the other processor for it, and hardly waits for it.
    let little = Nanos(BACKGROUND.0 / 5);
    let alone = simulated(little, 1).headline(0) / simulated(Nanos::ZERO, 1).headline(0);
    let if_waited_for = sessions / (sessions + little.0 as f64);
    assert!(if_waited_for < 0.93 && alone > 0.98, "{alone} {if_waited_for}");
    let of = |kind: usize| {
        let kind = &without.databases[0].types[kind];
        kind.cpu_ns as f64 / (kind.committed + kind.rolled_back) as f64
    };
    // Delivery has ten orders of 10 lines, and Payment one customer.
    assert!(of(3) > 3.0 * of(1), "{} {}", of(3), of(1));
}

#[test]
fn an_open_loop_has_its_rate_and_a_closed_one_its_pauses() {
    let mut scenario = tpcc(4, 64, 4, Bytes::from_gib(1));
    scenario.databases[0].load =
        Load::Open { users: 64, rate_per_second: 400.0, arrivals: Arrivals::Poisson };
    let open = run(&scenario, &device("p4500-2000"), 20);
    let rate = open.databases[0].response().count() as f64 / 20.0;
    assert!((rate - 400.0).abs() < 4.0 * (400.0f64 / 20.0).sqrt(), "{rate}");
    // 10 terminals per warehouse with the pauses of the specification: at most 12.86 new orders per
    // minute and warehouse.
    let mut scenario = tpcc(16, 160, 4, Bytes::from_gib(4));
    scenario.databases[0].load = Load::Closed { users: 160, pacing: 1.0 };
    let mut paced = underlay_engine::Simulation::new(
        &scenario,
        crate::scenario::store(&device("p4500-2000"), 1),
        underlay_core::RootSeed(3),
    )
    .expect("a valid scenario");
    let minutes = |minutes: u64| Nanos::from_secs(60 * minutes);
    let window = underlay_engine::Window { warm_up: minutes(5), measure: minutes(10) };
    let per_warehouse = paced.run(&window).headline(0) / 16.0;
    assert!((12.0..12.9).contains(&per_warehouse), "{per_warehouse}");
}

#[test]
fn connections_are_a_queue_and_the_network_takes_its_time() {
    let mut scenario = tpcc(8, 32, 4, Bytes::from_gib(2));
    let free = run(&scenario, &device("p4500-2000"), 5);
    scenario.databases[0].client.connections = Some(1);
    let one = run(&scenario, &device("p4500-2000"), 5);
    assert!(one.headline(0) < free.headline(0));
    let present = one.databases[0].places[Place::Connection as usize].mean_present(one.length());
    assert!((30.9..=31.0).contains(&present), "31 of 32 users wait: {present}");
    scenario.databases[0].client.connections = None;
    scenario.databases[0].client.round_trip = Nanos::from_millis(100);
    let far = run(&scenario, &device("p4500-2000"), 5);
    let minimum = far.databases[0].response().min().unwrap();
    assert!(minimum >= 100_000_000, "{minimum}");
    assert!(far.headline(0) < free.headline(0));
}

#[test]
fn page_images_follow_checkpoints() {
    let mut scenario = tpcc(4, 8, 4, Bytes::from_gib(1));
    let with = run(&scenario, &device("p4500-2000"), 5);
    postgresql(&mut scenario).full_page_writes = false;
    let without = run(&scenario, &device("p4500-2000"), 5);
    assert!(with.databases[0].log.images > 0 && without.databases[0].log.images == 0);
    let settings = postgresql(&mut scenario);
    settings.full_page_writes = true;
    settings.max_wal_size = Bytes::from_mib(64);
    let often = run(&scenario, &device("p4500-2000"), 5);
    let writers = &often.databases[0].writers;
    assert!(writers.checkpoints_forced > 2, "{writers:?}");
    let images = |run: &underlay_engine::EngineRun| {
        let database = &run.databases[0];
        database.log.images as f64 / database.committed() as f64
    };
    assert!(images(&often) > images(&with), "{} {}", images(&often), images(&with));
}

#[test]
fn autovacuum_comes_after_a_tenth_has_changed_and_takes_from_users() {
    let window = Window { warm_up: Nanos::ZERO, measure: Nanos::from_secs(1) };
    let seconds = |change: &dyn Fn(&mut PostgresqlSettings)| -> Vec<EngineRun> {
        let mut scenario = tpcc(4, 8, 4, Bytes::from_mib(32));
        change(postgresql(&mut scenario));
        let store = store(&device("5200eco-1920"), 1);
        let mut simulation = Simulation::new(&scenario, store, RootSeed(3)).expect("valid");
        simulation.warm_caches(20_000);
        (0..30).map(|_| simulation.run(&window)).collect()
    };
    let naptime = Some(Nanos::from_secs(15));
    let often = seconds(&|settings| {
        settings.autovacuum_naptime = naptime;
        settings.autovacuum_analyze_scale_factor = 0.002;
    });
    let reads = |runs: &[EngineRun]| -> Vec<u64> {
        runs.iter().map(|run| run.databases[0].io.analyze.departures).collect()
    };
    let of_often = reads(&often);
    assert!(of_often[..10].iter().all(|reads| *reads == 0), "{of_often:?}");
    assert!(of_often[10..].iter().sum::<u64>() > 1_000, "{of_often:?}");
    let rarely = seconds(&|settings| settings.autovacuum_naptime = naptime);
    let off = seconds(&|settings| settings.autovacuum_naptime = None);
    assert_eq!(reads(&off).iter().sum::<u64>(), 0);
    let committed = |runs: &[EngineRun]| -> u64 {
        runs[10..].iter().map(|run| run.databases[0].committed()).sum()
    };
    let (with, without) = (committed(&often), committed(&off));
    assert!(with < without, "{with} {without}");
    assert!(reads(&rarely).iter().sum::<u64>() < of_often.iter().sum());
}

#[test]
fn pages_that_users_add_are_not_read() {
    // All fits the pool and is in it: nothing is read but what nobody has touched before.
    let run = run(&tpcc(1, 8, 4, Bytes::from_gib(1)), &device("p4500-2000"), 20);
    let database = &run.databases[0];
    let [orders, added] = [database.types[0].committed, database.writers.session_pages];
    // A page takes the lines of about nine orders, and there are keys and other tables.
    assert!(added > orders / 12, "{added} pages for {orders} orders");
    assert!(database.pool.misses - added < database.pool.misses / 2, "{:?}", database.pool);
    assert!(database.io.read.arrivals <= database.pool.misses - added, "{:?}", database.io.read);
}

/// Adds a database like the only one. Volumes have 8 and 1 GiB: a half of each for either.
fn add_twin(scenario: &mut Scenario) {
    let half = |database: &mut DatabaseSpec, number: u64| {
        for part in [&mut database.data, &mut database.log] {
            part.length = Bytes(part.length.0 / 2);
            part.offset = Bytes(number * part.length.0);
        }
    };
    let mut twin = scenario.databases[0].clone();
    twin.name = "twin".to_string();
    half(&mut scenario.databases[0], 0);
    half(&mut twin, 1);
    scenario.databases.push(twin);
}

#[test]
fn alike_databases_are_filled_alike_and_have_users_of_their_own() {
    let mut scenario = tpcc(8, 8, 4, Bytes::from_mib(128));
    add_twin(&mut scenario);
    let filled = run(&scenario, &device("p4500-2000"), 4);
    let hits = |number: usize| {
        let pool = filled.databases[number].pool;
        pool.hits as f64 / (pool.hits + pool.misses) as f64
    };
    assert!((hits(0) - hits(1)).abs() < 0.005, "{} {}", hits(0), hits(1));
    // With other users the second one is filled by itself, to the same effect.
    scenario.databases[1].load = Load::Closed { users: 9, pacing: 0.0 };
    let apart = run(&scenario, &device("p4500-2000"), 4).databases[1].pool;
    let hits_apart = apart.hits as f64 / (apart.hits + apart.misses) as f64;
    assert!((hits(1) - hits_apart).abs() < 0.005, "{} {hits_apart}", hits(1));
    assert_ne!(filled.databases[0].types, filled.databases[1].types);
}

#[test]
fn databases_and_a_local_client_share_the_processors_of_a_host() {
    let mut two = tpcc(8, 8, 4, Bytes::from_gib(2));
    let alone = run(&two, &device("null"), 4).headline(0);
    add_twin(&mut two);
    let both = run(&two, &device("null"), 4);
    let sum = both.headline(0) + both.headline(1);
    assert!((0.95..1.05).contains(&(sum / alone)), "{sum} {alone}");
    assert!((0.9..1.1).contains(&(both.headline(0) / both.headline(1))));
    assert!(both.hosts[0].busy(both.length()) > 0.98);
    let mut local = tpcc(8, 8, 4, Bytes::from_gib(2));
    local.databases[0].client.host = Some(0);
    local.databases[0].demands.client_cpu = Nanos::from_micros(400);
    let local = run(&local, &device("null"), 4);
    // About 400 us per transaction of the server, and as much of the client.
    assert!((0.4..0.6).contains(&(local.headline(0) / alone)), "{} {alone}", local.headline(0));
}

/// Users of the only database that have a transaction in hand, on average.
fn at_work(run: &EngineRun) -> f64 {
    let places = run.databases[0].places.iter();
    places.map(|place| place.mean_present(run.length())).sum()
}

#[test]
fn as_many_users_work_as_are_set() {
    let window = Window { warm_up: Nanos::from_secs(2), measure: Nanos::from_secs(3) };
    let mut scenario = tpcc(4, 16, 8, Bytes::from_mib(64));
    let simulation = |scenario: &Scenario| {
        Simulation::new(scenario, store(&device("dc1500m-960"), 1), RootSeed(3)).expect("valid")
    };
    let mut closed = simulation(&scenario);
    for users in [4, 16, 1, 8, 99] {
        closed.set_users(users);
        let run = closed.run(&window);
        let expected = f64::from(users.min(16));
        assert!((at_work(&run) - expected).abs() < 1e-6, "{} of {expected}", at_work(&run));
    }
    closed.set_users(0);
    let run = closed.run(&window);
    assert!(at_work(&run) == 0.0 && run.headline(0) == 0.0);

    scenario.databases[0].load =
        Load::Open { users: 16, rate_per_second: 1e5, arrivals: Arrivals::Poisson };
    let mut open = simulation(&scenario);
    let mut backlog = 0;
    for users in [2, 16, 3] {
        open.set_users(users);
        let run = open.run(&window);
        assert!((at_work(&run) - f64::from(users)).abs() < 1e-6, "{}", at_work(&run));
        assert!(run.databases[0].backlog > backlog, "more arrive than are served");
        backlog = run.databases[0].backlog;
    }
}

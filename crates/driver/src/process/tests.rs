//! Both ends of a load generator's process, here in one process: commands arrive, and counts come back.

use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use underlay_core::{Nanos, RootSeed};
use underlay_workload::tpcc::{Entropy, Parameters, SHAPE, Tpcc, TpccAccounting};
use underlay_workload::transactional::{Mix, Weights};

use super::wire::{SpecLine, TickLine};
use super::{DriverProcess, serve};
use crate::arrivals::Arrivals;
use crate::driver::Driver;
use crate::error::DriveError;
use crate::noop::Noop;
use crate::spec::{DriveSpec, Pacing, Slowdown};

fn workload() -> Tpcc {
    let entropy = Entropy::new(100).unwrap();
    Tpcc::new(Parameters::new(2, RootSeed(3), entropy).unwrap())
}

fn started(spec: DriveSpec) -> (DriverProcess<TpccAccounting>, JoinHandle<std::io::Result<()>>) {
    let (near, far) = UnixStream::pair().unwrap();
    let driver = Driver::start(spec, Noop(workload()), Instant::now()).unwrap();
    let serving = thread::spawn(move || serve(driver, far));
    (DriverProcess::attach(near, &SHAPE, Duration::from_secs(1)).unwrap(), serving)
}

#[test]
fn what_is_counted_elsewhere_comes_back_complete() {
    let (process, serving) = started(DriveSpec::new(RootSeed(5), 3));
    process.set_users(3);
    thread::sleep(Duration::from_millis(50));
    process.set_mix(&Mix::Weighted(Weights::new(&[1, 1]).unwrap())).unwrap();
    process.set_slowdown(Slowdown { cpu: 1.5, ..Slowdown::NONE });
    let mut sum = process.tick();
    assert!(sum.completed() > 0 && sum.users.active == 3, "{sum:?}");
    assert_eq!(sum.response().count(), sum.completed());
    thread::sleep(Duration::from_millis(50));
    let next = process.tick();
    assert_eq!(next.begin, sum.end);
    sum.append(&next);
    assert_eq!(process.lost(), None);
    let summary = process.stop().unwrap();
    serving.join().unwrap().unwrap();
    sum.append(&summary.last_tick);
    assert_eq!(sum.types, summary.totals.types);
    // What was booked is what was counted.
    let orders = summary.totals.of(0usize).committed;
    assert_eq!(summary.accounting.variability.transactions.iter().sum::<u64>(), sum.completed());
    assert!(orders > 0);
    assert_eq!(summary.commits.len(), SHAPE.types.len());
}

#[test]
fn what_it_refuses_is_said() {
    let (process, serving) = started(DriveSpec::new(RootSeed(5), 1));
    let refused = process.set_rate(10.0, Nanos::ZERO).unwrap_err();
    assert!(matches!(refused, DriveError::Refused(_)), "{refused}");
    assert_eq!(refused.to_string(), DriveError::NotOpen.to_string());
    let weights = Mix::Weighted(Weights::new(&[1; 9]).unwrap());
    assert!(matches!(process.set_mix(&weights), Err(DriveError::Refused(_))));
    process.stop().unwrap();
    serving.join().unwrap().unwrap();
}

#[test]
fn a_process_that_ends_is_lost_and_its_results_with_it() {
    let (near, far) = UnixStream::pair().unwrap();
    let process: DriverProcess<TpccAccounting> =
        DriverProcess::attach(near, &SHAPE, Duration::from_secs(1)).unwrap();
    drop(far);
    process.set_users(1);
    let lost = process.lost().expect("it has ended");
    assert!(lost.to_string().ends_with("it has ended"), "{lost}");
    assert_eq!(process.tick().completed(), 0);
    assert!(matches!(process.set_rate(1.0, Nanos::ZERO), Err(DriveError::Lost(_))));
    assert_eq!(process.stop().unwrap_err(), lost);
}

#[test]
fn whoever_directs_it_may_go_without_a_word() {
    let (process, serving) = started(DriveSpec::new(RootSeed(5), 1));
    process.set_users(1);
    drop(process);
    serving.join().unwrap().unwrap();
}

#[test]
fn specifications_survive_and_ticks_of_other_workloads_do_not() {
    let mut spec = DriveSpec::new(RootSeed(u64::MAX), 7);
    spec.pacing = Pacing::Open {
        rate_per_second: 12.5,
        arrivals: Arrivals::Uniform,
        ramp: Nanos(3),
        queue_limit: 11,
    };
    spec.connections = Some(2);
    spec.shares_server_cpu = true;
    spec.server_is_here = true;
    let line = SpecLine::from(&spec);
    let text = serde_json::to_string(&line).unwrap();
    let read: SpecLine = serde_json::from_str(&text).unwrap();
    assert_eq!(format!("{:?}", read.spec().unwrap()), format!("{spec:?}"));
    let mut tick = crate::tick::DriveTick::empty(&SHAPE, Nanos(1), Nanos(2));
    tick.types[1].server_cpu.add(123);
    assert_eq!(TickLine::from(&tick).tick(&SHAPE), Some(tick.clone()));
    assert_eq!(TickLine::from(&tick).tick(&underlay_workload::batch::SHAPE), None);
}

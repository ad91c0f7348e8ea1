//! Time lines of the host: its processors, who used them, and what waited.

use underlay_record::conventions::source;

use super::drawing::Drawing;
use crate::observed::ObservedRun;

/// Processors by state and by process tree, and pressure.
pub(super) fn draw_host(run: &ObservedRun, drawing: &mut Drawing) {
    let state = |name: &str| run.series(source::HOST_CPU, &format!("cpu.{name}"));
    for (name, title) in [
        ("user", "User"),
        ("system", "System"),
        ("iowait", "Idle, I/O outstanding"),
        ("idle", "Idle"),
        ("softirq", "Interrupts"),
        ("steal", "Steal"),
    ] {
        let series = format!("cpu.{name}");
        drawing.rate((&series, title, "host", "cores", "host CPU"), state(name), 1e-9);
    }
    // Rare, so that it is shown where there is any; without it the processors would look idle.
    let nice = state("nice").filter(|nice| nice.steps().any(|(_, _, by)| by > 0.0));
    drawing.rate(("cpu.nice", "User, low priority", "host", "cores", "host CPU"), nice, 1e-9);
    for (tree, title) in [
        ("postgres", "Database server"),
        ("mariadb", "Database server"),
        ("driver", "Load generator"),
        // Where the load generator has a process of its own.
        ("underlay", "Lab"),
        ("datastore", "Datastore"),
    ] {
        let of = |counter: &str| run.series(source::PROCESS, &format!("{tree}.{counter}"));
        let name = format!("process.{tree}.on_cpu");
        drawing.rate((&name, title, "host", "cores", "process CPU"), of("on_cpu"), 1e-9);
        let name = format!("process.{tree}.run_queue");
        drawing.rate((&name, title, "host", "sessions", "run queue"), of("run_queue"), 1e-9);
    }
    drawing.rate(
        ("pressure.cpu", "CPU pressure", "host", "share", "pressure"),
        run.series(source::PRESSURE, "cpu.some"),
        1e-6,
    );
    drawing.rate(
        ("pressure.io", "I/O pressure", "host", "share", "pressure"),
        run.series(source::PRESSURE, "io.some"),
        1e-6,
    );
}

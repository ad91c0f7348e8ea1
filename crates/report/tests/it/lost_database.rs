//! Transactions as the engine counts them, where the server went away in the window.

use underlay_core::{Histogram, Nanos};
use underlay_record::conventions::{event, source};
use underlay_record::{Interval, NewPhase, PhaseKind, PhaseStatus, TransactionTick};
use underlay_report::Analysis;

use crate::time_axis::{SECONDS, Writer, analysed, counter};

/// 100 transactions in each second but from 3 to 6.
fn clients(writer: &mut Writer<'_>) {
    let mut latency = Histogram::new();
    latency.record_n(1_000_000, 100);
    let users = Some(4);
    let (kind, label) = (PhaseKind::Measure, "measure, 4 users".to_string());
    let new = NewPhase { run: Some(writer.run), kind, label, users, at: Nanos::ZERO };
    let phase = writer.recorder.begin_phase(&new).unwrap();
    for second in 0..SECONDS {
        let tick = TransactionTick {
            interval: Interval {
                begin: Nanos::from_secs(second),
                end: Nanos::from_secs(second + 1),
            },
            transaction: "new_order".into(),
            committed: if (3..6).contains(&second) { 0 } else { 100 },
            rolled_back: 0,
            failed: 0,
            unknown: 0,
            errors: Default::default(),
            retries: 0,
            response: (&latency).into(),
            service: (&latency).into(),
        };
        writer.recorder.transactions(writer.run, &tick).unwrap();
    }
    let end = Nanos::from_secs(SECONDS);
    writer.recorder.end_phase(phase, end, PhaseStatus::Finished).unwrap();
}

/// What the engine had counted at each whole second.
fn counted(writer: &mut Writer<'_>, engine: &str, values: [f64; SECONDS as usize + 1]) {
    let series = match engine {
        source::MARIADB => ["status.com_commit", "status.com_rollback"],
        _ => ["database.xact_commit", "database.xact_rollback"],
    };
    writer.source(engine, series.map(counter).into(), |at| {
        let value = values[at as usize];
        vec![value, value * 0.0]
    });
}

fn tpm(analysis: &Analysis) -> Option<f64> {
    let [rung] = &analysis.rungs[..] else { panic!("{:?}", analysis.rungs) };
    rung.metrics.get("tpm")?.value
}

fn says_why(analysis: &Analysis) -> bool {
    analysis.findings.iter().any(|finding| {
        finding.code == "tpm-unknown" && finding.text.contains("a restarted server counts from 0")
    })
}

const NAN: f64 = f64::NAN;

#[test]
fn transactions_per_minute_are_unknown_when_the_server_counted_anew() {
    for engine in [source::POSTGRES, source::MARIADB] {
        let found = analysed(|writer| {
            clients(writer);
            counted(writer, engine, [1e4, 10_100., 10_200., 10_300., NAN, NAN, 0., 100., 200.]);
        });
        assert_eq!(tpm(&found), None, "{engine}");
        assert!(says_why(&found), "{engine}: {:?}", found.findings);
    }
}

/// Once the counter has come above what it was, only the loss tells.
#[test]
fn they_are_unknown_when_connections_were_lost() {
    for kind in [event::OUTAGE, event::RECOVERY] {
        let found = analysed(|writer| {
            clients(writer);
            counted(writer, source::MARIADB, [0., 100., 100., 110., NAN, NAN, 120., 220., 320.]);
            writer.event(kind, 3.2, "the database went away");
        });
        assert_eq!(tpm(&found), None, "{kind}");
        assert!(says_why(&found), "{kind}: {:?}", found.findings);
    }
}

/// A server that could not be asked, and counted on, counted nothing meanwhile: the minute has that time in it.
#[test]
fn a_time_in_which_the_counter_could_not_be_read_is_part_of_the_minute() {
    let found = analysed(|writer| {
        clients(writer);
        counted(writer, source::POSTGRES, [0., 100., 200., 300., NAN, NAN, 300., 400., 500.]);
        // What costs no connection changes nothing.
        writer.event(event::STORAGE, 3.2, "a device is slow");
    });
    let tpm = tpm(&found).unwrap();
    assert!((tpm - 500.0 / 8.0 * 60.0).abs() < 20.0, "{tpm}");
    assert!(!says_why(&found));
}

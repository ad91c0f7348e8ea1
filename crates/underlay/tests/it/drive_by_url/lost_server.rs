//! A server that goes away under load: what the users saw is not lost with it, and no figure comes from counters that were
//! reset.

use std::time::Duration;

use serde_json::Value;
use underlay_database::Engine;
use underlay_testbed::{number, or_skip};

use super::Stranger;
use super::stopped::{has_rows, wait_until};

/// Longer than the warm-up, and than it takes the program to see that the load is over.
const A_WHILE: Duration = Duration::from_secs(3);

fn what_users_saw_outlives_the_server(engine: Engine) {
    let mut stranger = or_skip!(Stranger::new(engine));
    stranger.succeed("tpcc", &["--load", "--warehouses", "1"]);
    let thinking = ["--users", "2", "--key-think", "1", "--warm-up", "0s", "--duration", "1s"];
    let value = stranger.succeed("tpcc", &thinking);
    assert_eq!(value["run"]["warm_up_too_short"], true, "{value:#}");
    let arguments = ["--users", "2", "--warm-up", "1s", "--duration", "8s", "--json"];
    let payments =
        |it: &Stranger| number(&it.host.server.target(), "SELECT count(*) FROM tpcc.history");
    let paid_before = payments(&stranger);
    let mut child = stranger.begin_at(&stranger.url(), "tpcc", &arguments);
    // What comes before the load takes as long as the host likes.
    wait_until("a load", &mut child, || payments(&stranger) > paid_before);
    std::thread::sleep(A_WHILE);
    // Not back before the load has ended.
    stranger.host.server.kill().expect("our server");
    std::thread::sleep(3 * A_WHILE);
    stranger.host.server.start().expect("it recovers");
    let ended = stranger.ended(child, "tpcc");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let value: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let run = &value["run"];
    assert!(run["nopm"].as_f64().is_some_and(|nopm| nopm > 0.0), "{run:#}");
    assert!(!run["outages"].as_array().expect("a list").is_empty(), "{run:#}");
    // After the warm-up.
    assert!(run["measured_from_ns"].as_u64().is_some_and(|at| at >= 1_000_000_000), "{run:#}");
    assert_eq!(run["warm_up_too_short"], false, "{run:#}");
    assert_eq!(run["by_the_database"]["tpm"], Value::Null, "{run:#}");
    assert!(run["seconds"].as_array().expect("a list").len() >= 7, "{run:#}");
    assert_eq!(run["asked"]["users"], 2);
    assert!(!run["checks"]["after"]["results"].as_array().expect("checks").is_empty());
    an_insertion_that_lost_its_server_is_incomplete(&mut stranger);
}

/// Its figures are those of an insertion that did not come to its end, and what the server kept is compared.
fn an_insertion_that_lost_its_server_is_incomplete(stranger: &mut Stranger) {
    let rows = 100_000_000;
    let arguments = ["--run", "--rows", &rows.to_string(), "--json"];
    let mut child = stranger.begin_at(&stranger.url(), "batch", &arguments);
    wait_until("an insertion", &mut child, || has_rows(stranger));
    stranger.host.server.kill().expect("our server");
    stranger.host.server.start().expect("it recovers");
    let ended = stranger.ended(child, "batch");
    assert_eq!(ended.code, Some(4), "{}{}", ended.stdout, ended.stderr);
    let value: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let run = &value["run"];
    assert_eq!(run["complete"], false, "{run:#}");
    assert!(run["failure"].is_string(), "{run:#}");
    assert!(run["rows_acknowledged"].as_u64().is_some_and(|rows| rows > 0), "{run:#}");
    assert_eq!(run["check"]["violation_count"], 0, "{run:#}");
}

#[test]
fn what_users_saw_outlives_a_postgresql() {
    what_users_saw_outlives_the_server(Engine::Postgresql);
}

#[test]
fn what_users_saw_outlives_a_mariadb() {
    what_users_saw_outlives_the_server(Engine::Mariadb);
}

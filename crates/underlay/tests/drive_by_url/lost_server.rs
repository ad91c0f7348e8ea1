//! A server that goes away under load: what the users saw is not lost with it, and no figure comes from counters that began
//! anew.

use std::time::Duration;

use serde_json::Value;
use underlay_database::Engine;

use super::Stranger;

/// Longer than it takes the program to begin, and to see that the load is over.
const A_WHILE: Duration = Duration::from_secs(3);

fn what_users_saw_outlives_the_server(engine: Engine) {
    let Some(mut stranger) = Stranger::new(engine) else {
        underlay_host::skip!("no {engine} on this host");
    };
    stranger.succeed("tpcc", &["--load", "--warehouses", "1"]);
    let arguments = ["--users", "2", "--warm-up", "1s", "--duration", "8s", "--json"];
    let child = stranger.begin_at(&stranger.url(), "tpcc", &arguments);
    // Under load, and not back before the load has ended.
    std::thread::sleep(2 * A_WHILE);
    stranger.server.kill().expect("our server");
    std::thread::sleep(3 * A_WHILE);
    stranger.server.start().expect("it recovers");
    let ended = stranger.ended(child, "tpcc");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let value: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let run = &value["run"];
    assert!(run["nopm"].as_f64().is_some_and(|nopm| nopm > 0.0), "{run:#}");
    assert!(!run["outages"].as_array().expect("a list").is_empty(), "{run:#}");
    assert_eq!(run["by_the_database"]["tpm"], Value::Null, "{run:#}");
    assert!(run["seconds"].as_array().expect("a list").len() >= 7, "{run:#}");
    assert_eq!(run["asked"]["users"], 2);
    assert!(!run["checks"]["after"]["results"].as_array().expect("checks").is_empty());
}

#[test]
fn what_users_saw_outlives_a_postgresql() {
    what_users_saw_outlives_the_server(Engine::Postgresql);
}

#[test]
fn what_users_saw_outlives_a_mariadb() {
    what_users_saw_outlives_the_server(Engine::Mariadb);
}

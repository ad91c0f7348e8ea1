//! Loads of MariaDB, whose counters know COMMIT and ROLLBACK, and statements that commit by themselves only among its own commits; and
//! comparisons of its runs, each of which has folders of its own.

use underlay_report::analysis::{Analysis, Gate, GateState};

use crate::answers::analysis;
use crate::synthetic::{OnMariadb, OwnCommits, nvme, sata, scenario};

const SHOP: [&str; 5] = ["browse_category", "purchase", "login", "reviews_by_actor", "prices"];
const STATEMENTS: [&str; 5] =
    ["point_select", "update_index", "update_non_index", "insert", "delete"];

/// What says COMMIT, but never comes in these loads.
const IDLE: [&str; 2] = ["read_write", "write_only"];

/// One design whose log decides, at one number of users; of the server's own commits nothing is known.
fn found(types: [&'static str; 5], told: &[&'static str], is_recorded: bool) -> Analysis {
    let (told, idle) = (told.to_vec(), IDLE.to_vec());
    found_of(OnMariadb { types, idle, told, is_recorded, own_commits: OwnCommits::Unsaid })
}

fn found_of(mariadb: OnMariadb) -> Analysis {
    let mut design = nvme();
    design.demands.log_ns = 5e6;
    let mut alone = scenario(vec![design]);
    (alone.users, alone.repeats, alone.measure_s) = (vec![8], 2, 30);
    alone.mariadb = Some(mariadb);
    analysis(&alone)
}

fn commits_gate(found: &Analysis) -> &Gate {
    found.bottlenecks[0].gates.iter().find(|gate| gate.id == "G3").expect("it is always there")
}

fn tpm(found: &Analysis) -> Option<f64> {
    found.rungs[0].metrics.get("tpm").and_then(|tpm| tpm.value)
}

#[test]
fn a_shop_is_compared_by_what_says_commit() {
    for is_recorded in [true, false] {
        let found = found(SHOP, &["purchase", "read_write", "write_only"], is_recorded);
        let gate = commits_gate(&found);
        assert_eq!(gate.state, GateState::Passed, "{}", gate.text);
        assert_eq!(found.bottlenecks[0].class, "log", "{}", found.bottlenecks[0].sentence);
        // 43 of 100 transactions are purchases.
        let all = found.rungs[0].metrics["transactions_per_second"].value.unwrap();
        let share = tpm(&found).unwrap() / 60.0 / all;
        assert!((0.38..0.48).contains(&share), "{share} of the transactions");
    }
}

#[test]
fn statements_that_commit_by_themselves_are_not_missed() {
    for is_recorded in [true, false] {
        let found = found(STATEMENTS, &IDLE, is_recorded);
        let gate = commits_gate(&found);
        assert_eq!(gate.state, GateState::NotJudged, "{}", gate.text);
        assert_eq!(found.bottlenecks[0].class, "log", "{}", found.bottlenecks[0].sentence);
        assert_eq!(tpm(&found), None, "unknown, not 0");
    }
}

#[test]
fn statements_that_commit_by_themselves_are_counted_among_the_servers_own_commits() {
    let of = |types, told: &[&'static str], is_recorded, log_bin| {
        let (told, idle) = (told.to_vec(), IDLE.to_vec());
        let own_commits = OwnCommits::Sampled { log_bin };
        found_of(OnMariadb { types, idle, told, is_recorded, own_commits })
    };
    let statements = of(STATEMENTS, &IDLE, true, "OFF");
    let gate = commits_gate(&statements);
    assert_eq!(gate.state, GateState::Passed, "{}", gate.text);
    let all = statements.rungs[0].metrics["transactions_per_second"].value.unwrap();
    let share = tpm(&statements).expect("it is counted") / 60.0 / all;
    assert!((0.98..1.02).contains(&share), "{share} of the transactions");

    // The commits of the log are among the server's own, and who recorded no types could have opened transactions.
    for (is_recorded, log_bin) in [(true, "ON"), (false, "OFF")] {
        let unknown = of(STATEMENTS, &IDLE, is_recorded, log_bin);
        assert_eq!(commits_gate(&unknown).state, GateState::NotJudged);
        assert_eq!(tpm(&unknown), None);
    }
    // Where somebody says COMMIT, statements of transactions are among the server's own commits: these are not what counts.
    let shop = of(SHOP, &["purchase", "read_write", "write_only"], true, "OFF");
    assert_eq!(commits_gate(&shop).state, GateState::Passed);
    let all = shop.rungs[0].metrics["transactions_per_second"].value.unwrap();
    let share = tpm(&shop).unwrap() / 60.0 / all;
    assert!((0.38..0.48).contains(&share), "{share} of the transactions");
}

#[test]
fn what_the_load_generator_recorded_goes_before_names() {
    // Of these two, old records would take the other one for what says COMMIT.
    let types = ["transfer", "read_only", "insert", "delete", "point_select"];
    let found = found(types, &["transfer"], true);
    let gate = commits_gate(&found);
    assert_eq!(gate.state, GateState::Passed, "{}", gate.text);
}

#[test]
fn folders_of_a_run_are_no_difference_between_designs() {
    let of_run = |run: &'static str| {
        let mut settings = vec![("innodb_flush_log_at_trx_commit", "1")];
        settings.extend(
            [
                "datadir",
                "tmpdir",
                "slave_load_tmpdir",
                "socket",
                "pid_file",
                "init_file",
                "log_error",
                "innodb_data_home_dir",
                "innodb_log_group_home_dir",
                "innodb_undo_directory",
                "innodb_tmpdir",
            ]
            .map(|name| (name, run)),
        );
        settings
    };
    let mut two = scenario(vec![sata(), nvme()]);
    (two.users, two.repeats, two.measure_s) = (vec![4], 2, 12);
    let told = vec!["purchase"];
    let own_commits = OwnCommits::Unsaid;
    two.mariadb =
        Some(OnMariadb { types: SHOP, idle: Vec::new(), told, is_recorded: true, own_commits });
    for (design, run) in two.designs.iter_mut().zip(["/run/1", "/run/2"]) {
        design.settings = of_run(run);
    }
    let found = analysis(&two);
    let not_asked: Vec<&str> = found
        .confounds
        .iter()
        .filter(|confound| !confound.asked)
        .map(|confound| confound.path.as_str())
        .collect();
    assert_eq!(not_asked, Vec::<&str>::new());
    assert!(!found.findings.iter().any(|finding| finding.code == "confounded"));

    // What is a setting of the server's is one all the same.
    two.designs[1].settings.push(("innodb_doublewrite", "OFF"));
    let found = analysis(&two);
    let confound = found.confounds.iter().find(|confound| !confound.asked).expect("one is found");
    assert_eq!(confound.path, "engine.in-force.innodb_doublewrite");
}

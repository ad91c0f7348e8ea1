//! The published experiments run, at small effort: the fit meets its target, every published number has its row, and
//! the output is reproducible. How good the predictions are is printed, not asserted: it is a finding.

use underlay_core::RootSeed;
use underlay_simulation::experiments::{Comparison, Effort, Role, System, compare, testbeds};
use underlay_study::{DatastoreKind, builtin_datastore, published_numbers};

const SMALL: Effort = Effort { requests: 8_000 };

fn comparison(name: &str) -> Comparison {
    let testbed = testbeds().into_iter().find(|testbed| testbed.name == name).expect("known");
    compare(&testbed, SMALL, RootSeed(1)).expect("built-in designs are placed")
}

#[test]
fn each_published_number_has_a_row_and_the_fit_meets_its_target() {
    for name in ["kingston-drives", "kingston-nvme", "vmware"] {
        let compared = comparison(name);
        for row in &compared.rows {
            println!("{name} {row:?}");
            assert!(row.simulated.is_some_and(|value| value > 0.0), "{row:?}");
        }
        let expected = published_numbers(compared.testbed.publication).expect("known").len();
        assert!(!compared.rows.is_empty() && compared.rows.len() <= expected);
        let fitted: Vec<_> = compared.rows.iter().filter(|row| row.role == Role::Fitted).collect();
        assert_eq!(fitted.len(), usize::from(compared.stack_per_io.is_some()), "{name}");
        // The built-in design has what was fitted.
        for experiment in &compared.testbed.experiments {
            let System::Cluster { design, .. } = experiment.system else { continue };
            let Some(DatastoreKind::Cluster(plan)) = builtin_datastore(design) else {
                panic!("{design} is a cluster")
            };
            let (stated, found) = (plan.spec.settings.stack.per_io, compared.stack_per_io);
            let found = found.expect("every cluster is fitted");
            assert!(stated.0.abs_diff(found.0) < found.0 / 20, "{design}: {stated}, {found}");
        }
        for row in fitted {
            assert!(row.error_percent().is_some_and(|error| error.abs() < 4.0), "{row:?}");
        }
    }
}

#[test]
fn a_comparison_is_reproducible() {
    assert_eq!(comparison("kingston-nvme"), comparison("kingston-nvme"));
}

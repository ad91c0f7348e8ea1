//! Functions and single statements do the same work.

use underlay_database::postgres::tpcc::{Mode, Outcome};
use underlay_workload::tpcc::Terminal;

use crate::harness::{TWO_WAREHOUSES, database_or_skip, loaded_database};

const TERMINALS: usize = 4;
const TRANSACTIONS: usize = 600;

#[test]
fn both_modes_leave_the_same_rows() {
    let mut results = Vec::new();
    for mode in Mode::ALL {
        let database = database_or_skip!(loaded_database(TWO_WAREHOUSES));
        let mut session = database.session(mode);
        let parameters = database.parameters();
        let mut terminals: Vec<Terminal> =
            (0..TERMINALS as u64).map(|user| Terminal::new(&parameters, user)).collect();
        let outcomes: Vec<Outcome> = (0..TRANSACTIONS)
            .map(|number| {
                let transaction = terminals[number % TERMINALS].next();
                database.run(&mut session, &transaction).unwrap()
            })
            .collect();
        database.assert_consistent(None);
        results.push((outcomes, database.content()));
    }
    let (statements, procedures) = (results.pop().unwrap(), results.pop().unwrap());
    assert_eq!(procedures.0, statements.0);
    assert_eq!(procedures.1, statements.1);
    assert!(procedures.0.iter().any(|outcome| !outcome.committed), "no order was undone");
}

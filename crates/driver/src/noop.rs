//! The session that does nothing: what remains is the cost of the generator.
//!
//! It creates no orders, so it acknowledges none: the ledger stays empty.

use underlay_database::SessionError;
use underlay_database::postgres::tpcc::Outcome;
use underlay_workload::tpcc::{NewOrder, Transaction};

use crate::session::{Connector, Session};

/// Opens [`NoopSession`]s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noop;

/// Completes every transaction at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoopSession;

impl Connector for Noop {
    type Session = NoopSession;

    async fn connect(&self) -> Result<NoopSession, SessionError> {
        Ok(NoopSession)
    }
}

impl Session for NoopSession {
    async fn run(&mut self, transaction: &Transaction) -> Result<Outcome, SessionError> {
        Ok(Outcome { committed: !rolls_back(transaction), order_id: None, skipped_deliveries: 0 })
    }
}

fn rolls_back(transaction: &Transaction) -> bool {
    matches!(transaction, Transaction::NewOrder(order) if NewOrder::rolls_back(order))
}

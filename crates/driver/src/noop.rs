//! A session that completes every transaction at once: what remains is the cost of the generator.

use std::time::Duration;

use underlay_database::SessionError;
use underlay_database::session::{Commits, Connector, Session};
use underlay_workload::transactional::Workload;

/// Opens sessions with nothing, for any workload.
#[derive(Clone, Copy, Debug)]
pub struct Noop<W>(pub W);

/// Completes every transaction at once.
#[derive(Clone, Copy, Debug)]
pub struct NoopSession<W>(std::marker::PhantomData<W>);

impl<W: Workload> Connector for Noop<W> {
    type Workload = W;
    type Session = NoopSession<W>;

    fn workload(&self) -> &W {
        &self.0
    }

    fn commits(&self, _: usize) -> Commits {
        Commits::Automatically(0)
    }

    fn limit_statements(&mut self, _: Duration) {}

    async fn connect(&self) -> Result<NoopSession<W>, SessionError> {
        Ok(NoopSession(std::marker::PhantomData))
    }
}

impl<W: Workload> Session for NoopSession<W> {
    type Workload = W;

    async fn run(&mut self, transaction: &W::Transaction) -> Result<W::Outcome, SessionError> {
        Ok(W::imagined(transaction))
    }
}

//! A session with the process or thread of the server that works for it, where that is on this host.
//!
//! It deliberately does not decide what follows from its processor time: how long answers are held back is in `cpu_debt`.

use std::path::Path;

use underlay_core::{Dilation, Nanos};
use underlay_database::session::{Connector, Session};
use underlay_database::{SessionError, is_server_task};

use crate::cpu_debt::CpuDebt;
use crate::server_task::{Account, ServerTask};

/// A session that is followed, if it can be.
pub(crate) struct FollowedSession<S> {
    pub(crate) session: S,
    /// None where no server is behind the session, and where it cannot be followed.
    task: Option<ServerTask>,
    /// None in real time.
    debt: Option<CpuDebt>,
}

impl<S: Session> FollowedSession<S> {
    /// Opens a session. Without `server_is_here` it is not followed.
    pub(crate) async fn open<C: Connector<Session = S>>(
        connector: &C,
        dilation: Dilation,
        server_is_here: bool,
    ) -> Result<FollowedSession<S>, SessionError> {
        let mut session = connector.connect().await?;
        let number = match (dilation.is_dilated(), server_is_here) {
            (true, _) => session.server_task().await?,
            // Not every server says so; transactions can do without.
            (false, true) => {
                let number = session.server_task().await.ok().flatten();
                number.filter(|number| is_server_task(Path::new("/proc"), *number))
            }
            (false, false) => None,
        };
        // A process that cannot be followed has ended, which the first request will show.
        let task = number.and_then(|number| ServerTask::open(number).ok());
        let debt = task.as_ref().filter(|_| dilation.is_dilated());
        let debt = debt.map(|task| CpuDebt::of(task, dilation));
        Ok(FollowedSession { session, task, debt })
    }

    /// What the server used for it until now.
    pub(crate) fn account(&self) -> Option<Account> {
        self.task.as_ref()?.account().ok()
    }

    /// How long its last answer is to be held back, in design time.
    pub(crate) fn owed(&mut self) -> Nanos {
        let (Some(task), Some(debt)) = (&self.task, &mut self.debt) else { return Nanos::ZERO };
        debt.owed(task)
    }
}

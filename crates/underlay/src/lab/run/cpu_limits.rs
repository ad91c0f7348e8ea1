//! The CPU limits of a run's servers: in force while load runs, and lifted before and after it.
//!
//! A study limits what the load gets. Starting a server and checking its data with a tenth of a processor would take minutes
//! in which nothing is measured. Limits on memory are deliberately left alone: they decide what is cached when load begins.

use underlay_host::Cgroup;

use crate::lab::abort::{Abort, During};

/// The groups that have a limit, and each limit in processors.
pub struct CpuLimits(Vec<(Cgroup, f64)>);

impl CpuLimits {
    /// Those in force now.
    pub fn of<'c>(groups: impl IntoIterator<Item = &'c Cgroup>) -> CpuLimits {
        let limited = |group: &Cgroup| Some((group.clone(), group.cpus()?));
        CpuLimits(groups.into_iter().filter_map(limited).collect())
    }

    /// Lets the servers use all processors.
    pub fn lift(&self) -> Result<(), Abort> {
        self.each(|_| None)
    }

    /// Brings the limits into force again.
    pub fn restore(&self) -> Result<(), Abort> {
        self.each(Some)
    }

    fn each(&self, limit: impl Fn(f64) -> Option<f64>) -> Result<(), Abort> {
        self.0.iter().try_for_each(|(group, cpus)| {
            group.set_cpus(limit(*cpus)).during("change the CPU limit of the database server")?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CpuLimits;
    use underlay_host::{Cgroup, CgroupLimits, StateDir, Teardown};

    #[test]
    fn limits_are_lifted_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::at(folder.path().join("state")).unwrap();
        let teardown = Teardown::create(&state, "limits of a test").unwrap();
        let create = |name: &str, cpus| {
            let name = format!("underlay-limits-{}-{name}", std::process::id());
            let limits = CgroupLimits { memory: None, cpus };
            Cgroup::create(&teardown, &name, &limits).unwrap().0
        };
        let (Some(limited), Some(free)) = (create("limited", Some(0.5)), create("free", None))
        else {
            underlay_host::skip!("this host gives us no control groups");
        };
        if limited.cpus().is_none() {
            underlay_host::skip!("control groups of this host have no CPU limits");
        }
        let limits = CpuLimits::of([&limited, &free]);
        limits.lift().unwrap();
        assert_eq!((limited.cpus(), free.cpus()), (None, None));
        limits.restore().unwrap();
        assert_eq!((limited.cpus(), free.cpus()), (Some(0.5), None));
        drop(limits);
        limited.release().unwrap();
        free.release().unwrap();
        assert!(teardown.unwind().is_empty());
    }
}

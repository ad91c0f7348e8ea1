//! How long a storage request takes this host itself, and how long it should take on each design: what
//! `time-dilation = "auto"` is decided by.
//!
//! A few seconds per design through the path that its runs will use: volumes, file system, block device, server. It
//! does not look at the database or at processors.

use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use underlay_blockio::load::write_all;
use underlay_blockio::{BlockIoError, Job, Target, run};
use underlay_core::{Bytes, Dilation, Nanos};
use underlay_datastore::{Context, Timing, open};
use underlay_host::{StateDir, Teardown};
use underlay_record::conventions::finding;
use underlay_record::{Finding, Severity};
use underlay_study::{DesignPlan, Plan, TimeDilation, find_io_profile};
use underlay_workload::block::Content;

use crate::lab::abort::{Abort, During};
use crate::lab::interrupt;
use crate::lab::run::{datastore_spec, volume_requests};

/// A design whose requests take this host itself at most this share of the modelled time, before answers are sent early to
/// make up for it, is not the host's.
const HOST_SHARE_MAX: f64 = 0.2;
/// What `auto` chooses at most.
const FACTOR_MAX: u32 = TimeDilation::AUTO_MAX;
/// Slow enough that the fastest device can be modelled.
const PILOT_FACTOR: u32 = 8;
/// What the requests go to.
const FILE: Bytes = Bytes::from_mib(16);
const LOAD: &str = "4k-random-70-30";
const MEASURE: Duration = Duration::from_secs(2);

/// What was seen of one design.
pub struct Seen {
    design: String,
    /// A request without any modelled delay, wall time. Zero where nothing is delayed.
    host: Nanos,
    /// The mean of what the model says of 4 KiB requests, one at a time.
    modelled: Nanos,
}

/// Looks at each design of a plan.
pub fn look(plan: &Plan, state: &StateDir, server_program: &Path) -> Result<Vec<Seen>, Abort> {
    let seen = plan.designs.iter().map(|design| {
        let teardown = Teardown::create(state, "pilot").during("keep a list of what is created")?;
        let seen = of_design(plan, design, state, &teardown, server_program);
        teardown.unwind();
        seen
    });
    seen.collect()
}

fn of_design(
    plan: &Plan,
    design: &DesignPlan,
    state: &StateDir,
    teardown: &Teardown,
    server_program: &Path,
) -> Result<Seen, Abort> {
    let scratch = state.scratch_dir(&format!("{}-pilot", std::process::id()));
    teardown.create_directory(&scratch).during("create a folder for the pilot")?;
    let dilation = Dilation::new(PILOT_FACTOR).expect("a factor in range");
    let context = Context { teardown, scratch: &scratch, server_program, owner: None, dilation };
    let spec = datastore_spec(design, plan.seed.child("datastore", 0));
    let mut datastore =
        open(&spec, &volume_requests(design), &context).during("open the datastore")?;
    let profile = find_io_profile(LOAD).expect("a built-in block load");
    datastore.set_timing(Timing::Off).during("switch the modelled latencies")?;
    let path = datastore.volumes()[0].path.join("pilot");
    let target = Target::create(&path, FILE).during("create a file on the datastore")?;
    let content = Content::new(profile.content, plan.seed)
        .map_err(|problem| Abort::Failed(problem.to_string()))?;
    // A file with holes is read from memory.
    write_all(&target, FILE, &content, 0, None, &mut |_| true).during("fill a file")?;
    datastore.destage_all().during("destage what the pilot wrote")?;
    datastore.set_timing(Timing::Modelled).during("switch the modelled latencies")?;
    datastore.timing().during("read the datastore's timing")?;
    let job = Job {
        workload: &profile.jobs[0].workload,
        working_set: FILE,
        queue_depth: 1,
        warm_up: Duration::ZERO,
        measure: MEASURE,
        interval: MEASURE,
        seed: plan.seed,
    };
    match run(&target, &job, &mut interrupt::requested) {
        Err(BlockIoError::Interrupted) => return Err(Abort::Interrupted),
        ended => ended.during("load the datastore")?,
    };
    let timing = datastore.timing().during("read the datastore's timing")?;
    drop(target);
    datastore.close().during("remove the datastore")?;
    let (host, modelled) = timing.map_or((Nanos::ZERO, Nanos::ZERO), |timing| {
        (dilation.wall(timing.floor), timing.modelled_mean.unwrap_or_default())
    });
    Ok(Seen { design: design.name.clone(), host, modelled })
}

/// The smallest factor at which the host's share is small on every design.
pub fn factor(seen: &[Seen]) -> Dilation {
    let needed = seen.iter().map(Seen::factor).max().unwrap_or(1);
    Dilation::new(needed).unwrap_or_default()
}

/// What readers must know if a design needs a larger factor than the largest.
pub fn shortfall(seen: &[Seen]) -> Option<Finding> {
    let worst = seen.iter().max_by_key(|seen| seen.needed())?;
    let (needed, used) = (worst.needed(), worst.factor());
    if needed <= used {
        return None;
    }
    let share = worst.host.0 as f64 / (worst.modelled.0 as f64 * f64::from(used));
    Some(Finding {
        run: None,
        severity: Severity::Warning,
        code: finding::TIME_DILATION_LIMITED.to_string(),
        text: format!(
            "design `{}` needs time dilation {needed}, but `auto` chooses at most {used}: this \
             host takes {:.0} % of the modelled time of a request, more than the {:.0} % aimed at; \
             --time-dilation {} makes its share smaller",
            worst.design,
            share * 100.0,
            HOST_SHARE_MAX * 100.0,
            needed.min(Dilation::MAX),
        ),
        data: json!({ "design": worst.design, "needed": needed, "used": used }),
    })
}

impl Seen {
    /// The factor that is chosen for this design.
    fn factor(&self) -> u32 {
        self.needed().min(FACTOR_MAX)
    }

    /// The smallest factor at which the host's share is small, however large it is.
    fn needed(&self) -> u32 {
        let allowed = self.modelled.0 as f64 * HOST_SHARE_MAX;
        // Without a modelled delay there is nothing to tell apart from the host.
        if self.host == Nanos::ZERO || allowed < 1.0 {
            return 1;
        }
        ((self.host.0 as f64 / allowed).ceil() as u32).max(1)
    }

    /// For the record.
    pub fn to_json(&self) -> Value {
        json!({
            "design": self.design,
            "host_ns": self.host.0,
            "modelled_ns": self.modelled.0,
            "factor": self.factor(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{FACTOR_MAX, Seen, factor, shortfall};
    use serde_json::json;
    use underlay_core::Nanos;
    use underlay_record::Severity;

    fn seen(host_us: u64, modelled_us: u64) -> Seen {
        let (host, modelled) = (Nanos::from_micros(host_us), Nanos::from_micros(modelled_us));
        Seen { design: "d".to_string(), host, modelled }
    }

    #[test]
    fn the_fastest_design_decides_for_all() {
        assert_eq!(factor(&[seen(60, 9_000)]).factor(), 1);
        assert_eq!(factor(&[seen(60, 9_000), seen(60, 100)]).factor(), 3);
        assert_eq!(factor(&[seen(60, 60)]).factor(), 5);
        assert_eq!(factor(&[seen(900, 10)]).factor(), FACTOR_MAX);
    }

    #[test]
    fn a_design_without_delays_does_not_decide() {
        assert_eq!(factor(&[seen(0, 0)]).factor(), 1);
        assert_eq!(factor(&[]).factor(), 1);
    }

    #[test]
    fn a_larger_factor_than_the_largest_is_reported() {
        assert_eq!(shortfall(&[]), None);
        assert_eq!(shortfall(&[seen(60, 60), seen(0, 0)]), None);
        let found = shortfall(&[seen(64, 16), seen(60, 60)]).expect("a finding");
        assert_eq!(found.severity, Severity::Warning);
        assert_eq!(found.data, json!({ "design": "d", "needed": 20, "used": FACTOR_MAX }));
        for part in ["needs time dilation 20,", "at most 16:", " 25 % of", " 20 % aimed at"] {
            assert!(found.text.contains(part), "{}", found.text);
        }
        assert!(found.text.contains("--time-dilation 20 makes"), "{}", found.text);
        // No factor is larger than the largest that can be asked for.
        let found = shortfall(&[seen(900, 10)]).expect("a finding");
        assert!(found.text.contains("needs time dilation 450,"), "{}", found.text);
        assert!(found.text.contains("--time-dilation 64 makes"), "{}", found.text);
    }
}

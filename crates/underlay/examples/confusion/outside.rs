//! What no study can induce: a host that other programs use, and a load generator with little processor time.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads that use every processor of the host, two for each, until this is dropped.
pub struct BusyHost {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyHost {
    pub fn start() -> BusyHost {
        let over = Arc::new(AtomicBool::new(false));
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let burner = |_| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        BusyHost { threads: (0..2 * processors).map(burner).collect(), over }
    }
}

impl Drop for BusyHost {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The threads of a program's load generator in a control group with a share of one processor. The rest of the program,
/// its storage and its server stay outside. Needs the cpu controller of version 1, which limits threads.
pub struct ThrottledGenerator {
    group: PathBuf,
    over: Arc<AtomicBool>,
    follower: Option<JoinHandle<()>>,
}

impl ThrottledGenerator {
    pub fn start(pid: u32, share: f64) -> Result<ThrottledGenerator, Box<dyn std::error::Error>> {
        let root = PathBuf::from("/sys/fs/cgroup/cpu");
        if !root.join("cpu.cfs_quota_us").exists() {
            return Err(
                "a throttled load generator needs the cpu controller of cgroup version 1".into()
            );
        }
        let group = root.join(format!("underlay-confusion-{}", std::process::id()));
        fs::create_dir_all(&group)?;
        // The kernel takes no quota below 1 ms.
        fs::write(group.join("cpu.cfs_period_us"), "50000")?;
        fs::write(group.join("cpu.cfs_quota_us"), ((share * 50_000.0) as u64).to_string())?;
        let over = Arc::new(AtomicBool::new(false));
        let (tasks, ended) = (group.join("tasks"), Arc::clone(&over));
        let follower = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for thread in generator_threads(pid) {
                    // A thread that has ended meanwhile needs no limit.
                    let _ = fs::write(&tasks, thread);
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        Ok(ThrottledGenerator { group, over, follower: Some(follower) })
    }
}

impl Drop for ThrottledGenerator {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(follower) = self.follower.take() {
            let _ = follower.join();
        }
        if let Err(error) = fs::remove_dir(&self.group) {
            eprintln!("could not remove {}: {error}", self.group.display());
        }
    }
}

/// The ids of the load generator's threads.
fn generator_threads(pid: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads
        .filter(|thread| {
            fs::read_to_string(thread.path().join("comm"))
                .is_ok_and(|name| name.trim_start().starts_with("drive-"))
        })
        .filter_map(|thread| thread.file_name().into_string().ok())
        .collect()
}

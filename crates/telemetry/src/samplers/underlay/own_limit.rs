//! Whether a CPU limit stops the process that collects: `cpu.stat` of its control group and of those above.
//!
//! A limit may be set on any of them, and stops everything below. Sets nothing.

use crate::kernel_file::KernelFile;
use crate::keyed::value_of;
use crate::targets::Roots;
use std::path::PathBuf;

/// How often, and for how long, the process was stopped; in the order of the series.
pub(super) const SERIES: [&str; 3] =
    ["limit.periods", "limit.throttled.periods", "limit.throttled.time"];

/// The groups that may limit this process.
pub(super) struct OwnLimit(Vec<KernelFile>);

impl OwnLimit {
    /// Of the process that calls.
    pub(super) fn find(roots: &Roots) -> OwnLimit {
        let groups = std::fs::read_to_string(roots.proc.join("self/cgroup")).unwrap_or_default();
        let folders = groups.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let is_version_2 = controllers.is_empty();
            let counts = is_version_2 || controllers.split(',').any(|name| name == "cpu");
            let mount = roots.sys.join("fs/cgroup").join(controllers);
            counts.then(|| (mount, PathBuf::from(path.trim_start_matches('/'))))
        });
        let mut files = Vec::new();
        for (mount, path) in folders {
            for folder in path.ancestors() {
                let file = KernelFile::open(mount.join(folder).join("cpu.stat"));
                // A group of version 2 without the controller counts time, and no periods.
                files.extend(file.ok().and_then(|mut file| {
                    let counts = value_of(file.text().ok()?, "nr_periods").is_some();
                    counts.then_some(file)
                }));
            }
        }
        OwnLimit(files)
    }

    /// Periods, throttled periods and throttled time in ns, of all groups together; missing where none can limit.
    pub(super) fn values(&mut self) -> [f64; SERIES.len()] {
        if self.0.is_empty() {
            return [f64::NAN; SERIES.len()];
        }
        let mut sums = [0.0; SERIES.len()];
        for file in &mut self.0 {
            let Ok(text) = file.text() else { continue };
            let of = |key, factor: f64| value_of(text, key).map(|value| value * factor);
            let time = of("throttled_time", 1.0).or_else(|| of("throttled_usec", 1e3));
            let values = [of("nr_periods", 1.0), of("nr_throttled", 1.0), time];
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value.unwrap_or(0.0);
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::OwnLimit;
    use crate::targets::Roots;
    use std::fs;

    #[test]
    fn limits_of_groups_above_count_in_both_versions() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("below the folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        let roots = Roots { proc: folder.path().join("proc"), sys: folder.path().join("sys") };
        assert!(OwnLimit::find(&roots).values()[0].is_nan());

        write("proc/self/cgroup", "5:memory:/x\n3:cpu,cpuacct:/a/b\n0::/c/d\n");
        let stat = "nr_periods 7\nnr_throttled 2\nthrottled_time 3000\n";
        write("sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", stat);
        write(
            "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.stat",
            "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
        );
        assert_eq!(OwnLimit::find(&roots).values(), [7.0, 2.0, 3000.0]);
        let stat = "usage_usec 5\nnr_periods 10\nnr_throttled 1\nthrottled_usec 4\n";
        write("sys/fs/cgroup/c/cpu.stat", stat);
        write("sys/fs/cgroup/c/d/cpu.stat", "usage_usec 5\n");
        assert_eq!(OwnLimit::find(&roots).values(), [17.0, 3.0, 7000.0]);
    }
}

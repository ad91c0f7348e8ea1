//! The text of `/proc/stat`. Pure.

/// Order of the columns, and of the series.
pub(crate) const STATES: [&str; 10] =
    ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// One unit of the file: `USER_HZ` is 100 on every architecture that runs a database.
pub(crate) const TICK_NS: f64 = 1e7;

/// Ticks per state, guest time taken out of user and nice.
pub(crate) type Ticks = [u64; STATES.len()];

/// What is kept of the file. Missing scalars are `NAN`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stat {
    pub(crate) total: Ticks,
    /// By CPU number, in the order of the file.
    pub(crate) cpus: Vec<(u32, Ticks)>,
    pub(crate) context_switches: f64,
    pub(crate) forks: f64,
    pub(crate) running: f64,
    pub(crate) blocked: f64,
}

impl Default for Stat {
    fn default() -> Stat {
        Stat {
            total: Ticks::default(),
            cpus: Vec::new(),
            context_switches: f64::NAN,
            forks: f64::NAN,
            running: f64::NAN,
            blocked: f64::NAN,
        }
    }
}

/// Reads the text into `stat`, reusing its memory. An error names what is wrong; old kernels with
/// fewer columns are read with the missing states as zero.
pub(crate) fn parse(text: &str, stat: &mut Stat) -> Result<(), String> {
    let mut cpus = std::mem::take(&mut stat.cpus);
    cpus.clear();
    *stat = Stat { cpus, ..Stat::default() };
    let mut has_total = false;
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(' ') else { continue };
        match key {
            "cpu" => {
                stat.total = ticks(rest)?;
                has_total = true;
            }
            "ctxt" => stat.context_switches = scalar(rest),
            "processes" => stat.forks = scalar(rest),
            "procs_running" => stat.running = scalar(rest),
            "procs_blocked" => stat.blocked = scalar(rest),
            _ => {
                if let Some(number) = key.strip_prefix("cpu").and_then(|n| n.parse().ok()) {
                    stat.cpus.push((number, ticks(rest)?));
                }
            }
        }
    }
    if has_total { Ok(()) } else { Err("there is no line `cpu`".to_string()) }
}

fn scalar(text: &str) -> f64 {
    text.trim().parse::<u64>().map_or(f64::NAN, |value| value as f64)
}

fn ticks(columns: &str) -> Result<Ticks, String> {
    let mut ticks = Ticks::default();
    let mut seen = 0;
    for (slot, column) in ticks.iter_mut().zip(columns.split_ascii_whitespace()) {
        *slot = column.parse().map_err(|_| format!("`{column}` is not a number of ticks"))?;
        seen += 1;
    }
    if seen < 4 {
        return Err(format!("a CPU line has {seen} columns instead of at least 4"));
    }
    let [user, nice, .., guest, guest_nice] = &mut ticks;
    *user = user.saturating_sub(*guest);
    *nice = nice.saturating_sub(*guest_nice);
    Ok(ticks)
}

#[cfg(test)]
mod tests {
    use super::{Stat, parse};
    use proptest::prelude::proptest;

    const TEXT: &str = "\
cpu  23947 20 3860 144078 553 0 75 32 1000 5
cpu0 11422 0 1555 73207 78 0 8 13 400 0
cpu3 12525 20 2304 70870 475 0 66 19 600 5
intr 293436 0 0 0 1
ctxt 516372
btime 1763633914
processes 10347
procs_running 2
procs_blocked 1
softirq 185063 0 17735 1
";

    fn parsed(text: &str) -> Result<Stat, String> {
        let mut stat = Stat::default();
        parse(text, &mut stat).map(|()| stat)
    }

    #[test]
    fn guest_time_is_taken_out_of_user_time() {
        let stat = parsed(TEXT).expect("a sound text");
        assert_eq!(stat.total, [22947, 15, 3860, 144078, 553, 0, 75, 32, 1000, 5]);
        assert_eq!(stat.cpus.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(stat.cpus[1].1[0], 11925);
        assert_eq!((stat.context_switches, stat.forks), (516372.0, 10347.0));
        assert_eq!((stat.running, stat.blocked), (2.0, 1.0));
    }

    #[test]
    fn old_kernels_have_fewer_columns() {
        let stat = parsed("cpu 1 2 3 4\n").expect("four columns are enough");
        assert_eq!(stat.total, [1, 2, 3, 4, 0, 0, 0, 0, 0, 0]);
        assert!(stat.context_switches.is_nan());
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        assert!(parsed("").expect_err("nothing").contains("`cpu`"));
        assert!(parsed("cpu 1 2 3\n").expect_err("short").contains("3 columns"));
        assert!(parsed("cpu 1 2 x 4\n").expect_err("not a number").contains("`x`"));
        assert!(parsed("cpu 1 2 3 99999999999999999999999\n").is_err());
    }

    #[test]
    fn a_large_host_is_read_completely() {
        let mut text = String::from("cpu 1 1 1 1 1 1 1 1 0 0\n");
        for cpu in 0..1024 {
            text.push_str(&format!("cpu{cpu} 1 1 1 1 1 1 1 1 0 0\n"));
        }
        assert_eq!(parsed(&text).expect("a sound text").cpus.len(), 1024);
    }

    #[test]
    fn memory_is_reused_but_not_old_values() {
        let mut stat = parsed(TEXT).expect("a sound text");
        parse("cpu 1 2 3 4\n", &mut stat).expect("a sound text");
        assert!(stat.cpus.is_empty());
        assert!(stat.running.is_nan());
    }

    proptest! {
        #[test]
        fn never_panics(text in "(cpu|cpu[0-9]{1,12}|ctxt|procs_running)?[ 0-9a-z\n]{0,200}") {
            let _any = parsed(&text);
        }

        #[test]
        fn never_panics_on_anything(text in ".{0,300}") {
            let _any = parsed(&text);
        }
    }
}

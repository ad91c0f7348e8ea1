//! Timers and rates of a database server under time dilation: what the study writes in design time, as the server
//! must be given it in the host's.
//!
//! Knows the settings that matter for minutes under load: intervals of background work, limits of waits, pages per
//! second. Timers that cannot be set, such as PostgreSQL's once-a-second statistics, stay as they are.

use std::collections::BTreeMap;

use underlay_core::Dilation;

use crate::plan::EngineKind;
use crate::postgresql;

/// A setting whose value depends on how fast time goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DilatedSetting {
    /// Its name.
    pub name: &'static str,
    /// The value in design time, as the server shows it: the study's, or the server's default.
    pub design: String,
    /// The value that the server is given.
    pub server: String,
    /// Whether the server's range kept it from being dilated in full.
    pub is_limited: bool,
}

/// What the number of a setting counts.
enum Counts {
    /// Spans of so many nanoseconds, in whole numbers: longer under dilation, up to the server's maximum.
    Spans(u64, u64),
    /// The same with fractions.
    Fractions(u64, u64),
    /// Something per second: less under dilation, down to the server's minimum.
    PerSecond(u64),
}

use Counts::{Fractions, PerSecond, Spans};

/// Name, the server's default in its own unit (0 = none), and what it counts.
type Timer = (&'static str, f64, Counts);

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
/// Largest number that PostgreSQL takes for timeouts in milliseconds.
const INT_MAX: u64 = i32::MAX as u64;

static POSTGRESQL: [Timer; 14] = [
    ("autovacuum_naptime", 60.0, Spans(S, INT_MAX / 1000)),
    ("autovacuum_vacuum_cost_delay", 2.0, Fractions(MS, 100)),
    ("bgwriter_delay", 200.0, Spans(MS, 10_000)),
    ("checkpoint_timeout", 300.0, Spans(S, 86_400)),
    ("commit_delay", 0.0, Spans(US, 100_000)),
    ("deadlock_timeout", 1000.0, Spans(MS, INT_MAX)),
    ("idle_in_transaction_session_timeout", 0.0, Spans(MS, INT_MAX)),
    ("idle_session_timeout", 0.0, Spans(MS, INT_MAX)),
    ("lock_timeout", 0.0, Spans(MS, INT_MAX)),
    ("archive_timeout", 0.0, Spans(S, INT_MAX / 2)),
    ("statement_timeout", 0.0, Spans(MS, INT_MAX)),
    ("transaction_timeout", 0.0, Spans(MS, INT_MAX)),
    ("vacuum_cost_delay", 0.0, Fractions(MS, 100)),
    ("wal_writer_delay", 200.0, Spans(MS, 10_000)),
];

static INNODB: [Timer; 7] = [
    ("innodb_flush_log_at_timeout", 1.0, Spans(S, 2_700)),
    // Averages over so many turns of the page cleaner, one each second.
    ("innodb_flushing_avg_loops", 30.0, PerSecond(1)),
    ("innodb_io_capacity", 200.0, PerSecond(100)),
    ("innodb_io_capacity_max", 2000.0, PerSecond(100)),
    ("innodb_lock_wait_timeout", 50.0, Spans(S, 100_000_000)),
    ("lock_wait_timeout", 0.0, Spans(S, 31_536_000)),
    ("max_statement_time", 0.0, Fractions(S, 31_536_000)),
];

/// The settings that a server of these `settings` is given in their stead; none in real time.
pub fn dilated_settings(
    engine: EngineKind,
    settings: &BTreeMap<String, String>,
    dilation: Dilation,
) -> Vec<DilatedSetting> {
    if !dilation.is_dilated() {
        return Vec::new();
    }
    let timers: &[Timer] = match engine {
        EngineKind::Postgresql => &POSTGRESQL,
        EngineKind::Mariadb | EngineKind::Mysql => &INNODB,
    };
    let text = match engine {
        EngineKind::Postgresql => with_unit,
        EngineKind::Mariadb | EngineKind::Mysql => |number: f64, _: &Counts| number.to_string(),
    };
    timers.iter().filter_map(|timer| dilated(timer, settings, dilation, text)).collect()
}

/// A time as PostgreSQL shows it: in the largest unit that needs no fraction.
fn with_unit(number: f64, counts: &Counts) -> String {
    let (Spans(unit, _) | Fractions(unit, _)) = counts else { return number.to_string() };
    let ns = (number * *unit as f64).round() as u64;
    let units = [("d", 86_400 * S), ("h", 3_600 * S), ("min", 60 * S), ("s", S), ("ms", MS)];
    let largest = units.iter().find(|(_, unit)| ns.is_multiple_of(*unit));
    largest.map_or_else(|| format!("{}us", ns / US), |(name, unit)| format!("{}{name}", ns / unit))
}

/// One of them; none where it is off, or where the server alone can read what the study says.
fn dilated(
    (name, default, counts): &Timer,
    settings: &BTreeMap<String, String>,
    dilation: Dilation,
    text: fn(f64, &Counts) -> String,
) -> Option<DilatedSetting> {
    let written = settings.get(*name);
    let number = match (written, counts) {
        (None, _) => *default,
        (Some(text), Spans(unit, _) | Fractions(unit, _)) => {
            postgresql::time(text, *unit)?.0 as f64 / *unit as f64
        }
        (Some(text), PerSecond(_)) => text.trim().parse().ok()?,
    };
    if number <= 0.0 {
        return None;
    }
    let factor = f64::from(dilation.factor());
    let (wanted, server) = match counts {
        Spans(_, most) => (number * factor, (number * factor).round().min(*most as f64)),
        Fractions(_, most) => (number * factor, (number * factor).min(*most as f64)),
        PerSecond(least) => (number / factor, (number / factor).round().max(*least as f64)),
    };
    Some(DilatedSetting {
        name,
        design: text(number, counts),
        server: server.to_string(),
        is_limited: (server - wanted).abs() > 0.5,
    })
}

#[cfg(test)]
mod tests {
    use super::{INNODB, POSTGRESQL, dilated_settings};
    use crate::plan::EngineKind;
    use std::collections::BTreeMap;
    use underlay_core::Dilation;

    fn given(
        engine: EngineKind,
        written: &[(&str, &str)],
        factor: u32,
    ) -> Vec<(String, String, bool)> {
        let settings: BTreeMap<String, String> =
            written.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        dilated_settings(engine, &settings, Dilation::new(factor).unwrap())
            .into_iter()
            .filter(|setting| written.iter().any(|(name, _)| *name == setting.name))
            .map(|setting| (setting.name.to_string(), setting.server, setting.is_limited))
            .collect()
    }

    #[test]
    fn times_of_postgresql_grow_up_to_its_limits() {
        let written = [
            ("bgwriter_delay", "2s"),
            ("checkpoint_timeout", "30s"),
            ("lock_timeout", "0"),
            ("autovacuum_vacuum_cost_delay", "0.5"),
            ("statement_timeout", "-1"),
            ("work_mem", "4MB"),
        ];
        let found = given(EngineKind::Postgresql, &written, 8);
        let said: Vec<_> = found.iter().map(|(n, v, l)| (n.as_str(), v.as_str(), *l)).collect();
        assert_eq!(
            said,
            [
                ("autovacuum_vacuum_cost_delay", "4", false),
                ("bgwriter_delay", "10000", true),
                ("checkpoint_timeout", "240", false),
            ]
        );
    }

    #[test]
    fn defaults_are_dilated_too_and_real_time_changes_nothing() {
        let none = BTreeMap::new();
        let found = dilated_settings(EngineKind::Postgresql, &none, Dilation::new(4).unwrap());
        let shown = |name| found.iter().find(|setting| setting.name == name).map(|s| &*s.design);
        assert_eq!(shown("checkpoint_timeout"), Some("5min"));
        assert_eq!(shown("bgwriter_delay"), Some("200ms"));
        let value = |name| found.iter().find(|setting| setting.name == name).map(|s| &*s.server);
        assert_eq!(value("checkpoint_timeout"), Some("1200"));
        assert_eq!(value("deadlock_timeout"), Some("4000"));
        assert_eq!(value("lock_timeout"), None);
        assert!(dilated_settings(EngineKind::Postgresql, &none, Dilation::NONE).is_empty());
    }

    #[test]
    fn pages_per_second_of_innodb_shrink_down_to_its_limits() {
        let written = [("innodb_io_capacity", "2000"), ("innodb_io_capacity_max", "400")];
        let found = given(EngineKind::Mariadb, &written, 8);
        let said: Vec<_> = found.iter().map(|(n, v, l)| (n.as_str(), v.as_str(), *l)).collect();
        assert_eq!(
            said,
            [("innodb_io_capacity", "250", false), ("innodb_io_capacity_max", "100", true)]
        );
    }

    #[test]
    fn names_stand_once() {
        for timers in [&POSTGRESQL[..], &INNODB[..]] {
            let mut names: Vec<_> = timers.iter().map(|(name, ..)| name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), timers.len());
        }
    }
}

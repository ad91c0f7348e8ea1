//! The database server of a plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use underlay_core::{Bytes, Nanos};

use super::engine_kind::EngineKind;
use crate::dialect::Dialect;

/// The database engine of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct EnginePlan {
    /// Which engine.
    pub kind: EngineKind,
    /// Major version asked for; `None` = the newest one found.
    pub version: Option<u32>,
    /// Server settings from the study, as the engine's configuration file would carry them.
    pub settings: BTreeMap<String, String>,
    /// Memory of the server including the page cache it fills.
    pub memory_limit: Option<Bytes>,
    /// Processors the server may use, as a number of whole processors.
    pub cpus: Option<f64>,
    /// Speed of each, compared with those of other designs; 1 = the same.
    pub core_speed: f64,
    /// Folder of the server programs; `None` = look for them.
    pub server_bin: Option<PathBuf>,
}

/// A setting that cannot be read as what it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the setting {name} is `{value}`, which is not {kind}")]
pub struct SettingError {
    /// Its name.
    pub name: String,
    /// What the study says.
    pub value: String,
    /// What it should be: `a size`.
    pub kind: &'static str,
}

impl EnginePlan {
    /// Processors of speed 1 that do as much as those that the server may use; `None` = no limit.
    pub fn whole_cpus(&self) -> Option<f64> {
        self.cpus.map(|cpus| cpus * self.core_speed)
    }

    /// A size among the settings, as the server reads it; `None` where the study does not set it.
    ///
    /// # Errors
    /// When the server would not take it for a size.
    pub fn size_setting(&self, name: &str) -> Result<Option<Bytes>, SettingError> {
        let dialect = Dialect::of(self.kind);
        let bare = dialect.bare_unit(name).unwrap_or(1);
        self.read(name, "a size", |text| (dialect.size)(text, bare))
    }

    /// The server's own cache: the setting, or what the server takes without it.
    pub(crate) fn buffers(&self) -> Bytes {
        self.size_in_force(Dialect::of(self.kind).buffers)
    }

    /// What bounds the log between checkpoints: the setting, or what the server takes without it.
    pub fn log_size(&self) -> Bytes {
        self.size_in_force(Dialect::of(self.kind).log)
    }

    fn size_in_force(&self, setting: (&str, Bytes)) -> Bytes {
        let chosen = self.settings.get(setting.0).map(String::as_str);
        Dialect::of(self.kind).size_of(setting, chosen).unwrap_or(setting.1)
    }

    /// A time among the settings, as PostgreSQL reads it; a number without a unit counts `bare`.
    ///
    /// # Errors
    /// When it is no time.
    pub fn time_setting(&self, name: &str, bare: Nanos) -> Result<Option<Nanos>, SettingError> {
        self.read(name, "a time", |text| crate::postgresql::time(text, bare.0))
    }

    /// A number among the settings.
    ///
    /// # Errors
    /// When it is none.
    pub fn number_setting(&self, name: &str) -> Result<Option<f64>, SettingError> {
        self.read(name, "a number", |text| text.trim().parse().ok())
    }

    /// Whether the study switches a setting off.
    pub fn is_switched_off(&self, name: &str) -> bool {
        self.settings.get(name).is_some_and(|text| crate::postgresql::is_off(text))
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &'static str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingError> {
        let Some(text) = self.settings.get(name) else { return Ok(None) };
        let error = || SettingError { name: name.to_string(), value: text.clone(), kind };
        read(text).map(Some).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::EnginePlan;
    use underlay_core::{Bytes, Nanos};

    #[test]
    fn settings_are_read_as_the_server_reads_them() {
        let settings = [
            ("shared_buffers", "16384"),
            ("max_wal_size", "3GB"),
            ("checkpoint_timeout", "30"),
            ("bgwriter_delay", "1x"),
            ("fsync", "OFF"),
        ];
        let settings = settings.map(|(name, value)| (name.to_string(), value.to_string())).into();
        let engine = EnginePlan {
            kind: super::EngineKind::Postgresql,
            version: None,
            settings,
            memory_limit: None,
            cpus: None,
            core_speed: 1.0,
            server_bin: None,
        };
        assert_eq!(engine.size_setting("shared_buffers"), Ok(Some(Bytes::from_mib(128))));
        assert_eq!(engine.size_setting("max_wal_size"), Ok(Some(Bytes::from_gib(3))));
        assert_eq!(engine.size_setting("work_mem"), Ok(None));
        assert_eq!(engine.log_size(), Bytes::from_gib(3));
        let second = Nanos::from_secs(1);
        let timeout = engine.time_setting("checkpoint_timeout", second);
        assert_eq!(timeout, Ok(Some(Nanos::from_secs(30))));
        let wrong = engine.time_setting("bgwriter_delay", second).expect_err("no time");
        assert_eq!(wrong.to_string(), "the setting bgwriter_delay is `1x`, which is not a time");
        assert!(engine.is_switched_off("fsync") && !engine.is_switched_off("full_page_writes"));
        let without = EnginePlan { settings: std::collections::BTreeMap::new(), ..engine };
        assert_eq!(without.log_size(), Bytes::from_gib(1), "what the server takes by itself");
    }
}

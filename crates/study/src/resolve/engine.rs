//! The database server: merging, scaling and checking.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use underlay_core::Bytes;

use super::Resolver;
use super::chosen::{Chosen, Layer, Pick, pick};
use crate::entry::Entry;
use crate::exact;
use crate::file::Engine;
use crate::finding::Severity;
use crate::host_view::{DirectoryState, Enforcement};
use crate::limits::MEMORY_LIMIT_MIN;
use crate::plan::{EngineKind, EnginePlan, Scale, Setting};
use crate::postgresql;
use crate::scale;
use crate::suggest::nearest;

/// The decisions about one engine. Every part may be undecided.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineChoice {
    kind: Option<Chosen<EngineKind>>,
    version: Option<Chosen<u64>>,
    memory_limit: Option<Chosen<Bytes>>,
    cpus: Option<Chosen<f64>>,
    server_bin: Option<Chosen<String>>,
    settings: BTreeMap<String, Chosen<String>>,
}

impl EngineChoice {
    pub fn cpus(&self) -> Option<f64> {
        self.cpus.as_ref().map(|cpus| cpus.value)
    }

    pub fn memory_limit(&self) -> Option<Bytes> {
        self.memory_limit.as_ref().map(|limit| limit.value)
    }

    /// The value of a setting.
    pub fn setting(&self, name: &str) -> Option<&Chosen<String>> {
        self.settings.get(name)
    }

    /// The engine as the plan holds it; `None` when its kind was refused.
    pub fn plan(&self) -> Option<EnginePlan> {
        Some(EnginePlan {
            kind: self.kind.as_ref()?.value,
            version: self.version.as_ref().map(|version| version.value as u32),
            settings: self
                .settings
                .iter()
                .map(|(name, value)| (name.clone(), value.value.clone()))
                .collect(),
            memory_limit: self.memory_limit(),
            cpus: self.cpus(),
            server_bin: self.server_bin.as_ref().map(|folder| PathBuf::from(&folder.value)),
        })
    }

    /// This choice where it is made, `base` elsewhere.
    pub fn over(&self, base: &EngineChoice) -> EngineChoice {
        let mut settings = base.settings.clone();
        settings.extend(self.settings.clone());
        EngineChoice {
            kind: self.kind.clone().or_else(|| base.kind.clone()),
            version: self.version.clone().or_else(|| base.version.clone()),
            memory_limit: self.memory_limit.clone().or_else(|| base.memory_limit.clone()),
            cpus: self.cpus.clone().or_else(|| base.cpus.clone()),
            server_bin: self.server_bin.clone().or_else(|| base.server_bin.clone()),
            settings,
        }
    }

    /// The same server at another size.
    pub fn scaled(&self, scale: Scale) -> EngineChoice {
        let mut scaled = self.clone();
        if scale == Scale::FULL {
            return scaled;
        }
        scaled.memory_limit = self.memory_limit.as_ref().map(|limit| {
            limit.scaled(scale::size(limit.value, scale, Bytes::ZERO), exact::size(limit.value))
        });
        scaled.cpus = self
            .cpus
            .as_ref()
            .map(|cpus| cpus.scaled(cpus.value / f64::from(scale.divisor), cpus.value.to_string()));
        for (name, floor) in postgresql::SCALED {
            let bare = postgresql::bare_unit(name).unwrap_or(1);
            if let Some(chosen) = scaled.settings.get_mut(name)
                && let Some(full) = postgresql::size(&chosen.value, bare)
            {
                let size = scale::size(full, scale, Bytes(floor));
                *chosen = chosen.scaled(postgresql::size_text(size), chosen.value.clone());
            }
        }
        scaled
    }

    /// Adds one line per value to the provenance table.
    pub fn record(&self, provenance: &mut Vec<Setting>) {
        let rows = [
            self.kind.as_ref().map(|c| c.setting(c.value.as_str().to_string())),
            self.version.as_ref().map(|c| c.setting(c.value.to_string())),
            self.memory_limit.as_ref().map(|c| c.setting(exact::size(c.value))),
            self.cpus.as_ref().map(|c| c.setting(c.value.to_string())),
            self.server_bin.as_ref().map(|c| c.setting(c.value.clone())),
        ];
        provenance.extend(rows.into_iter().flatten());
        provenance.extend(self.settings.values().map(|c| c.setting(c.value.clone())));
    }

    /// The paths below the engine that this choice decides, for example `settings.wal_level`.
    pub fn decided(&self) -> Vec<String> {
        let mut decided = Vec::new();
        let mut add = |made: bool, key: &str| {
            if made {
                decided.push(key.to_string());
            }
        };
        add(self.kind.is_some(), "kind");
        add(self.version.is_some(), "version");
        add(self.memory_limit.is_some(), "memory-limit");
        add(self.cpus.is_some(), "cpus");
        add(self.server_bin.is_some(), "server-bin");
        self.settings.keys().for_each(|name| add(true, &format!("settings.{name}")));
        decided
    }

    /// A size setting in bytes, or what the server takes without it.
    fn size_setting(&self, name: &str, default: Bytes) -> Option<Bytes> {
        match self.setting(name) {
            None => Some(default),
            Some(chosen) => postgresql::size(&chosen.value, postgresql::bare_unit(name)?),
        }
    }

    pub fn shared_buffers(&self) -> Option<Bytes> {
        self.size_setting("shared_buffers", postgresql::SHARED_BUFFERS_DEFAULT)
    }

    pub fn max_wal_size(&self) -> Option<Bytes> {
        self.size_setting("max_wal_size", postgresql::MAX_WAL_SIZE_DEFAULT)
    }
}

impl Resolver<'_> {
    /// Decides about an engine from its layers, checking what can be checked value by value.
    pub(super) fn engine(&mut self, path: &str, layers: &[(Layer<'_>, &Engine)]) -> EngineChoice {
        let text = self.text;
        let at = |key: &str| format!("{path}.{key}");
        let mut choice = EngineChoice {
            kind: decide(text, &at("kind"), layers, |engine| &engine.kind),
            version: decide(text, &at("version"), layers, |engine| &engine.version),
            memory_limit: decide(text, &at("memory-limit"), layers, |engine| &engine.memory_limit),
            cpus: decide(text, &at("cpus"), layers, |engine| &engine.cpus),
            server_bin: decide(text, &at("server-bin"), layers, |engine| &engine.server_bin),
            settings: BTreeMap::new(),
        };
        if path == "engine"
            && let Some(folder) = &self.options.server_bin
        {
            let folder = folder.to_string_lossy().into_owned();
            choice.server_bin =
                Some(Chosen::command_line(folder, "engine.server-bin", "--server-bin"));
        }
        for (layer, engine) in layers.iter().rev() {
            for (name, setting) in &engine.settings.content.0 {
                if !self.is_free_setting(name, setting.name_span.clone(), *layer) {
                    continue;
                }
                let path = at(&format!("settings.{name}"));
                if let Pick::Found(mut chosen) = pick(text, &path, &[(*layer, &setting.value)]) {
                    // Problems of a setting concern the whole line.
                    chosen.span =
                        chosen.span.map(|span| setting.name_span.start.min(span.start)..span.end);
                    self.check_setting_value(name, &chosen);
                    choice.settings.insert(name.clone(), chosen);
                }
            }
        }
        choice
    }

    /// Checks an engine with all its overrides against the ladder and the host.
    pub(super) fn check_engine(&mut self, engine: &EngineChoice, users_max: Option<&Chosen<u32>>) {
        self.check_memory(engine, users_max);
        self.check_processors(engine);
        self.check_connections(engine, users_max);
        self.check_server(engine);
        self.doubt_settings(engine);
    }

    /// Whether the study may set it; reports names that belong to Underlay or cannot exist.
    fn is_free_setting(&mut self, name: &str, span: Range<usize>, layer: Layer<'_>) -> bool {
        let span = (layer == Layer::File).then_some(span);
        let folded = name.to_ascii_lowercase().replace('-', "_");
        let owned = postgresql::OWNED.iter().find(|(owned, _)| {
            *owned == folded || folded.starts_with("recovery_target") && *owned == "recovery_target"
        });
        if let Some((_, instead)) = owned {
            self.report.add(
                span,
                "forbidden-setting",
                format!("the setting `{name}` belongs to Underlay"),
                format!("decided by Underlay: {instead}"),
                "remove this line",
            );
            return false;
        }
        let first = |c: char| c.is_ascii_lowercase() || c == '_';
        let part_is_fine = |part: &str| {
            part.starts_with(first)
                && part.chars().all(|c| first(c) || c.is_ascii_digit() || c == '$')
        };
        let possible = name.split('.').all(part_is_fine);
        if !possible {
            self.report.add(
                span,
                "unknown-setting",
                format!("`{name}` cannot be the name of a server setting"),
                "names are lower case letters, digits and `_`",
                format!("did you mean `{folded}`?"),
            );
        }
        possible
    }

    fn check_setting_value(&mut self, name: &str, chosen: &Chosen<String>) {
        if chosen.value.contains(['\n', '\0']) {
            chosen.problem(
                &mut self.report,
                "wrong-type",
                format!("{} does not fit on one line", chosen.called()),
                "contains a line break or a zero byte",
                "write the value on one line",
            );
        }
        // -1 and similar special values are left to the server.
        if chosen.value.trim_start().starts_with('-') {
            return;
        }
        if let Some(bare) = postgresql::bare_unit(name)
            && postgresql::size(&chosen.value, bare).is_none()
        {
            chosen.problem(
                &mut self.report,
                "wrong-unit",
                format!("{} is not a size that PostgreSQL reads", chosen.called()),
                "PostgreSQL knows B, kB, MB, GB and TB, all powers of 1024",
                "write for example \"96MB\"",
            );
        }
        if name == "checkpoint_timeout" && postgresql::time(&chosen.value, 1_000_000_000).is_none()
        {
            chosen.problem(
                &mut self.report,
                "wrong-unit",
                format!("{} is not a time that PostgreSQL reads", chosen.called()),
                "PostgreSQL knows us, ms, s, min, h and d",
                "write for example \"30s\"",
            );
        }
        let count = |text: &str| text.trim().parse::<u32>().is_ok();
        if name == "max_connections" && !count(&chosen.value) {
            chosen.problem(
                &mut self.report,
                "wrong-type",
                format!("{} must be a whole number", chosen.called()),
                "not a whole number",
                "write for example 200",
            );
        }
    }

    fn check_memory(&mut self, engine: &EngineChoice, users_max: Option<&Chosen<u32>>) {
        let Some(limit) = &engine.memory_limit else { return };
        if limit.value < MEMORY_LIMIT_MIN {
            let help = self.too_small_help("give the server at least 64MiB");
            limit.problem(
                &mut self.report,
                "out-of-range",
                format!("{} is too small for a database server", limit.called()),
                format!("{} is below {MEMORY_LIMIT_MIN}", limit.value),
                help,
            );
        } else if let Some(buffers) = engine.shared_buffers()
            && limit.value < buffers
        {
            let place = match engine.setting("shared_buffers") {
                Some(chosen) => chosen.origin.to_string(),
                None => "the server's default".to_string(),
            };
            limit.problem(
                &mut self.report,
                "memory-below-buffers",
                format!("{} is smaller than shared_buffers", limit.called()),
                format!("{} is below shared_buffers = {buffers} ({place})", limit.value),
                format!(
                    "set shared_buffers to a quarter of the limit or less: \"{}\"",
                    postgresql::size_text(Bytes((limit.value.0 / 4) >> 20 << 20))
                ),
            );
        } else if let (Some(buffers), Some(users)) = (engine.shared_buffers(), users_max) {
            self.doubt_memory(limit, buffers, users.value);
        }
        if limit.value > self.host.memory {
            let help = self.scale_help(limit.value.0 as f64 / self.host.memory.0.max(1) as f64);
            limit.problem(
                &mut self.report,
                "larger-than-host",
                format!("{} is more than the host has", limit.called()),
                format!("the host has {}", self.host.memory),
                format!("lower it{help}"),
            );
        }
        if let Enforcement::Unenforced { reason } = &self.host.memory_limits {
            let text =
                format!("the memory limit of {} cannot be enforced on this host", limit.value);
            self.finding(
                Severity::Warning,
                "memory-limit-unenforced",
                text,
                reason.clone(),
                limit.line(self.text),
            );
        }
    }

    /// A server that is killed for lack of memory ends a run in its middle.
    fn doubt_memory(&mut self, limit: &Chosen<Bytes>, buffers: Bytes, users: u32) {
        /// Private memory of a session that runs short transactions, measured as 5 to 8 MiB.
        const PER_SESSION: Bytes = Bytes::from_mib(6);
        let wanted = buffers + Bytes(PER_SESSION.0 * u64::from(users));
        if wanted > limit.value {
            self.finding(
                Severity::Warning,
                "memory-tight",
                format!(
                    "{users} users and shared_buffers of {buffers} want about {wanted} of the {} \
                     that the server may use; it may be killed for lack of memory",
                    limit.value
                ),
                "raise engine.memory-limit, or lower shared_buffers or the top of the ladder",
                limit.line(self.text),
            );
        }
    }

    fn check_processors(&mut self, engine: &EngineChoice) {
        let Some(cpus) = &engine.cpus else { return };
        if cpus.value > f64::from(self.host.cpus) {
            let help = self.scale_help(cpus.value / f64::from(self.host.cpus.max(1)));
            cpus.problem(
                &mut self.report,
                "larger-than-host",
                format!("{} is more than the host has", cpus.called()),
                format!("{} asked for, the host has {}", cpus.value, self.host.cpus),
                format!("lower it{help}"),
            );
        } else if cpus.value < 0.1 {
            let help = self.too_small_help("give the server at least a tenth of a processor");
            cpus.problem(
                &mut self.report,
                "out-of-range",
                format!("{} is too small for a database server", cpus.called()),
                format!("{} is below 0.1", cpus.value),
                help,
            );
        }
        if let Enforcement::Unenforced { reason } = &self.host.cpu_limits {
            self.finding(
                Severity::Warning,
                "cpu-limit-unenforced",
                format!("the limit of {} processors cannot be enforced on this host", cpus.value),
                reason.clone(),
                cpus.line(self.text),
            );
        }
    }

    fn check_connections(&mut self, engine: &EngineChoice, users_max: Option<&Chosen<u32>>) {
        let Some(users) = users_max else { return };
        let chosen = engine.setting("max_connections");
        let allowed = match chosen {
            None => postgresql::MAX_CONNECTIONS_DEFAULT,
            Some(chosen) => match chosen.value.trim().parse() {
                Ok(allowed) => allowed,
                Err(_) => return,
            },
        };
        let reserve = postgresql::RESERVED_CONNECTIONS;
        if users.value > allowed.saturating_sub(reserve) {
            let wanted = users.value.saturating_add(reserve);
            let who = if chosen.is_some() { "set in the study" } else { "the server's default" };
            users.problem(
                &mut self.report,
                "too-many-users",
                format!("{} users are more than the server accepts", users.value),
                format!("max_connections is {allowed} ({who}), {reserve} of them are reserved"),
                format!("set max_connections = {wanted} or more under [engine.settings]"),
            );
        }
    }

    fn check_server(&mut self, engine: &EngineChoice) {
        let Some(kind) = &engine.kind else { return };
        let folder = engine.server_bin.as_ref();
        if let Some(folder) = folder {
            let wrong = match (self.host.directory)(Path::new(&folder.value)) {
                DirectoryState::Missing => "does not exist",
                DirectoryState::NotADirectory => "is not a directory",
                DirectoryState::Usable { .. } | DirectoryState::NotWritable => "",
            };
            if !wrong.is_empty() {
                folder.problem(
                    &mut self.report,
                    "no-directory",
                    format!("the folder of the server programs, \"{}\", {wrong}", folder.value),
                    wrong,
                    "name the folder that holds initdb and postgres, or leave the key out",
                );
                return;
            }
        }
        let path = folder.map(|folder| Path::new(&folder.value));
        let Some(servers) = (self.host.servers)(kind.value, path) else { return };
        let place = match folder {
            Some(folder) => format!("in \"{}\"", folder.value),
            None => "on this host".to_string(),
        };
        let asked = engine.version.as_ref().map(|version| version.value);
        let found = servers
            .iter()
            .filter(|server| asked.is_none_or(|asked| u64::from(server.major) == asked))
            .max_by_key(|server| server.major);
        if let Some(server) = found {
            if let Some(known) = &server.settings {
                self.check_known_settings(engine, known, server.major);
            }
            return;
        }
        let what =
            asked.map_or_else(|| kind.value.to_string(), |asked| format!("{} {asked}", kind.value));
        let versions: Vec<String> = servers.iter().map(|server| server.major.to_string()).collect();
        let (label, help) = match versions.as_slice() {
            [] => ("none was found".to_string(), "install the server (Debian, Ubuntu: apt install postgresql), or name the folder of its programs with --server-bin".to_string()),
            _ => (format!("found: {}", versions.join(", ")), "ask for a version that was found, leave `version` out, or name the folder of its programs with --server-bin".to_string()),
        };
        let message = format!("no server programs of {what} {place}");
        let span =
            engine.version.as_ref().and_then(|version| version.span.clone()).or(kind.span.clone());
        self.report.add(span, "engine-missing", message, label, help);
    }

    fn check_known_settings(
        &mut self,
        engine: &EngineChoice,
        known: &BTreeSet<String>,
        major: u32,
    ) {
        for (name, chosen) in &engine.settings {
            // A name with a dot belongs to an extension that may be loaded later.
            if known.contains(name) || name.contains('.') {
                continue;
            }
            let label = match nearest(name, known.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "not a setting of this server".to_string(),
            };
            chosen.problem(
                &mut self.report,
                "unknown-setting",
                format!("PostgreSQL {major} has no setting `{name}`"),
                label,
                "correct the name or remove the line",
            );
        }
    }

    fn doubt_settings(&mut self, engine: &EngineChoice) {
        const DOUBTFUL: [(&str, &str, &str); 4] = [
            (
                "fsync",
                "fsync-off",
                "nothing the server writes is safe, and storage is hardly asked to wait",
            ),
            (
                "full_page_writes",
                "full-page-writes-off",
                "a torn page after a crash cannot be repaired, and less log is written than in production",
            ),
            (
                "synchronous_commit",
                "synchronous-commit-off",
                "commits do not wait for the log device",
            ),
            (
                "autovacuum",
                "autovacuum-off",
                "dead rows pile up, and background writes are missing",
            ),
        ];
        for (name, code, consequence) in DOUBTFUL {
            let Some(chosen) = engine.setting(name) else { continue };
            if !postgresql::is_off(&chosen.value) {
                continue;
            }
            let line = chosen.line(self.text);
            self.finding(
                Severity::Warning,
                code,
                format!("{name} is off: {consequence}"),
                format!("remove `{name}` unless it is what the study asks about"),
                line,
            );
        }
    }

    /// The end of a remedy: the scale at which a too large study fits.
    pub(super) fn scale_help(&self, ratio: f64) -> String {
        let divisor = f64::from(self.scale.divisor) * ratio;
        if !divisor.is_finite() || divisor > 1024.0 {
            return String::new();
        }
        let k = (divisor.ceil() as u32).next_power_of_two();
        format!(", or run the study at this host's size: --scale 1/{k}")
    }

    fn too_small_help(&self, otherwise: &str) -> String {
        if self.scale == Scale::FULL {
            otherwise.to_string()
        } else {
            format!("{otherwise}; the scale {} is too small for this study", self.scale)
        }
    }
}

fn decide<T: Clone>(
    text: &str,
    path: &str,
    layers: &[(Layer<'_>, &Engine)],
    key: impl Fn(&Engine) -> &Entry<T>,
) -> Option<Chosen<T>> {
    let candidates: Vec<_> = layers.iter().map(|(layer, engine)| (*layer, key(engine))).collect();
    pick(text, path, &candidates).found()
}

//! The database server: merging its layers, scaling it, and checking value by value.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use underlay_core::Bytes;

use super::block_procedure;
use super::chosen::{Chosen, Layer, Pick, pick};
use super::resolver::Resolver;
use crate::dialect::Dialect;
use crate::entry::Entry;
use crate::exact;
use crate::file::Engine;
use crate::plan::{EngineKind, EnginePlan, Origin, Scale, Setting};
use crate::postgresql;
use crate::scale;

/// The decisions about one engine. Every part may be undecided.
#[derive(Clone, Debug, Default)]
pub(crate) struct EngineChoice {
    /// Which engine it is about, also where another layer decides that.
    pub of: EngineKind,
    pub kind: Option<Chosen<EngineKind>>,
    pub version: Option<Chosen<u64>>,
    pub memory_limit: Option<Chosen<Bytes>>,
    pub cpus: Option<Chosen<f64>>,
    pub core_speed: Option<Chosen<f64>>,
    pub server_bin: Option<Chosen<String>>,
    pub settings: BTreeMap<String, Chosen<String>>,
}

impl EngineChoice {
    /// How the engine is spoken to.
    pub fn dialect(&self) -> &'static Dialect {
        Dialect::of(self.of)
    }

    pub fn cpus(&self) -> Option<f64> {
        self.cpus.as_ref().map(|cpus| cpus.value)
    }

    /// 1 = as the others.
    pub fn core_speed(&self) -> f64 {
        self.core_speed.as_ref().map_or(1.0, |speed| speed.value)
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
            core_speed: self.core_speed(),
            server_bin: self.server_bin.as_ref().map(|folder| PathBuf::from(&folder.value)),
        })
    }

    /// This choice where it is made, `base` elsewhere.
    pub fn over(&self, base: &EngineChoice) -> EngineChoice {
        let mut settings = base.settings.clone();
        settings.extend(self.settings.clone());
        EngineChoice {
            of: self.of,
            kind: self.kind.clone().or_else(|| base.kind.clone()),
            version: self.version.clone().or_else(|| base.version.clone()),
            memory_limit: self.memory_limit.clone().or_else(|| base.memory_limit.clone()),
            cpus: self.cpus.clone().or_else(|| base.cpus.clone()),
            core_speed: self.core_speed.clone().or_else(|| base.core_speed.clone()),
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
        let dialect = self.dialect();
        for setting in dialect.scaled {
            let bare = dialect.bare_unit(setting.name).unwrap_or(1);
            if let Some(chosen) = scaled.settings.get_mut(setting.name)
                && let Some(full) = (dialect.size)(&chosen.value, bare)
            {
                let size = scale::size(full, scale, setting.least);
                *chosen = chosen.scaled((dialect.size_text)(size), chosen.value.clone());
            }
        }
        scaled
    }

    /// [`EngineChoice::scaled`] of a whole server: sizes that the study leaves to the server are scaled
    /// too, because the server's defaults do not shrink with the study.
    pub fn scaled_whole(&self, scale: Scale) -> EngineChoice {
        let mut scaled = self.scaled(scale);
        if scale == Scale::FULL {
            return scaled;
        }
        let dialect = self.dialect();
        for setting in dialect.scaled {
            let left_to_server = || {
                let size = scale::size(setting.default, scale, setting.least);
                let full = format!("{}, the server's own", (dialect.size_text)(setting.default));
                Chosen {
                    value: (dialect.size_text)(size),
                    path: format!("engine.settings.{}", setting.name),
                    origin: Origin::Scale { full, of: Box::new(Origin::Default) },
                    span: None,
                }
            };
            scaled.settings.entry(setting.name.to_string()).or_insert_with(left_to_server);
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
            self.core_speed.as_ref().map(|c| c.setting(c.value.to_string())),
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
        add(self.core_speed.is_some(), "core-speed");
        add(self.server_bin.is_some(), "server-bin");
        self.settings.keys().for_each(|name| add(true, &format!("settings.{name}")));
        decided
    }

    /// A size setting in bytes, or what the server takes without it.
    fn size_setting(&self, setting: (&str, Bytes)) -> Option<Bytes> {
        let chosen = self.setting(setting.0).map(|chosen| chosen.value.as_str());
        self.dialect().size_of(setting, chosen)
    }

    /// The server's own cache.
    pub fn buffers(&self) -> Option<Bytes> {
        self.size_setting(self.dialect().buffers)
    }

    /// What bounds the log.
    pub fn log_size(&self) -> Option<Bytes> {
        self.size_setting(self.dialect().log)
    }
}

/// The study's own engine. A block load has none, and refuses what says something of one.
pub(super) fn of_study(resolver: &mut Resolver<'_>) -> EngineChoice {
    if resolver.is_block_load() {
        block_procedure::refuse_engines(resolver);
        let default = [(Layer::Default, &resolver.defaults.engine.content)];
        return resolve(resolver, "engine", &default);
    }
    let layers = [
        (Layer::File, &resolver.file.engine.content),
        (Layer::Default, &resolver.defaults.engine.content),
    ];
    resolve(resolver, "engine", &layers)
}

/// Decides about an engine from its layers, checking what can be checked value by value.
pub(super) fn resolve(
    resolver: &mut Resolver<'_>,
    path: &str,
    layers: &[(Layer<'_>, &Engine)],
) -> EngineChoice {
    let text = resolver.text;
    let at = |key: &str| format!("{path}.{key}");
    let mut choice = EngineChoice {
        of: EngineKind::default(),
        kind: decide(text, &at("kind"), layers, |engine| &engine.kind),
        version: decide(text, &at("version"), layers, |engine| &engine.version),
        memory_limit: decide(text, &at("memory-limit"), layers, |engine| &engine.memory_limit),
        cpus: decide(text, &at("cpus"), layers, |engine| &engine.cpus),
        core_speed: decide(text, &at("core-speed"), layers, |engine| &engine.core_speed),
        server_bin: decide(text, &at("server-bin"), layers, |engine| &engine.server_bin),
        settings: BTreeMap::new(),
    };
    if path == "engine" {
        resolver.kind = choice.kind.as_ref().map(|kind| kind.value).unwrap_or_default();
    } else if let Some(kind) = choice.kind.as_ref().filter(|kind| kind.value != resolver.kind) {
        kind.problem(
            &mut resolver.report,
            "engine-differs",
            format!("a design cannot have another engine than the study ({})", resolver.kind),
            "the loaded database that all runs start from is of one engine",
            "compare engines with two studies of the same seed",
        );
    }
    choice.of = resolver.kind;
    check_version(resolver, &mut choice);
    if path == "engine"
        && let Some(folder) = &resolver.options.server_bin
        && !resolver.is_block_load()
    {
        let folder = folder.to_string_lossy().into_owned();
        choice.server_bin = Some(Chosen::command_line(folder, "engine.server-bin", "--server-bin"));
    }
    for (layer, engine) in layers.iter().rev() {
        for (name, setting) in &engine.settings.content.0 {
            if !is_free_setting(resolver, name, setting.name_span.clone(), *layer) {
                continue;
            }
            let path = at(&format!("settings.{name}"));
            if let Pick::Found(mut chosen) = pick(text, &path, &[(*layer, &setting.value)]) {
                // Problems of a setting concern the whole line.
                chosen.span =
                    chosen.span.map(|span| setting.name_span.start.min(span.start)..span.end);
                check_setting_value(resolver, name, &chosen);
                choice.settings.insert(name.clone(), chosen);
            }
        }
    }
    choice
}

/// Reports a version that is not supported, and forgets it.
fn check_version(resolver: &mut Resolver<'_>, choice: &mut EngineChoice) {
    let majors = &choice.dialect().majors;
    if let Some(version) = &choice.version
        && !majors.contains(&version.value)
    {
        let bounds = format!("a whole number from {} to {}", majors.start(), majors.end());
        version.problem(
            &mut resolver.report,
            "out-of-range",
            format!("{} must be {bounds}", version.called()),
            format!("{} is out of range", version.value),
            format!("write {bounds}"),
        );
        choice.version = None;
    }
}

/// Whether the study may set it; reports names that belong to Underlay or cannot exist.
fn is_free_setting(
    resolver: &mut Resolver<'_>,
    name: &str,
    span: Range<usize>,
    layer: Layer<'_>,
) -> bool {
    let span = (layer == Layer::File).then_some(span);
    let folded = name.to_ascii_lowercase().replace('-', "_");
    let owned = Dialect::of(resolver.kind).owned.iter().find(|(owned, _)| {
        *owned == folded || folded.starts_with("recovery_target") && *owned == "recovery_target"
    });
    if let Some((_, instead)) = owned {
        resolver.report.add(
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
        part.starts_with(first) && part.chars().all(|c| first(c) || c.is_ascii_digit() || c == '$')
    };
    let possible = name.split('.').all(part_is_fine);
    if !possible {
        resolver.report.add(
            span,
            "unknown-setting",
            format!("`{name}` cannot be the name of a server setting"),
            "names are lower case letters, digits and `_`",
            format!("did you mean `{folded}`?"),
        );
    }
    possible
}

fn check_setting_value(resolver: &mut Resolver<'_>, name: &str, chosen: &Chosen<String>) {
    if chosen.value.contains(['\n', '\0']) {
        chosen.problem(
            &mut resolver.report,
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
    let dialect = Dialect::of(resolver.kind);
    if let Some(bare) = dialect.bare_unit(name)
        && (dialect.size)(&chosen.value, bare).is_none()
    {
        chosen.problem(
            &mut resolver.report,
            "wrong-unit",
            format!("{} is not a size that {} reads", chosen.called(), dialect.title),
            dialect.size_units,
            dialect.size_example,
        );
    }
    if dialect.checkpoint_timeout.is_some_and(|(timeout, _)| timeout == name)
        && postgresql::time(&chosen.value, 1_000_000_000).is_none()
    {
        chosen.problem(
            &mut resolver.report,
            "wrong-unit",
            format!("{} is not a time that PostgreSQL reads", chosen.called()),
            "PostgreSQL knows us, ms, s, min, h and d",
            "write for example \"30s\"",
        );
    }
    let count = |text: &str| text.trim().parse::<u32>().is_ok();
    if name == "max_connections" && !count(&chosen.value) {
        chosen.problem(
            &mut resolver.report,
            "wrong-type",
            format!("{} must be a whole number", chosen.called()),
            "not a whole number",
            "write for example 200",
        );
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

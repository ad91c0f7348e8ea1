//! `[engine]`: the database server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use underlay_core::Bytes;

use crate::entry::{Entry, Section};
use crate::limits::{CPUS, ENGINE_MAJOR};
use crate::plan::EngineKind;
use crate::reader::Keys;
use crate::schema::Size;
use crate::words::Word;

/// The database server. Inside a design: what differs from the study's server.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Engine {
    /// Which engine.
    #[schemars(with = "Word<EngineKind>")]
    pub kind: Entry<EngineKind>,
    /// Major version; the newest one found on the host, when left out.
    #[schemars(range(min = 8, max = 18))]
    pub version: Entry<u64>,
    /// Memory of the server and the page cache it fills. No limit, when left out.
    #[schemars(with = "Size")]
    pub memory_limit: Entry<Bytes>,
    /// Processors the server may use; fractions are allowed. No limit, when left out.
    #[schemars(range(min = 0.1, max = 4096))]
    pub cpus: Entry<f64>,
    /// Folder of the server programs; the distributions' folders, when left out.
    pub server_bin: Entry<String>,
    /// Server settings by name, as in the engine's configuration file.
    pub settings: Section<Settings>,
}

/// Server settings by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(pub BTreeMap<String, NamedSetting>);

/// One server setting.
#[derive(Clone, Debug)]
pub(crate) struct NamedSetting {
    /// The bytes of its name in the file.
    pub name_span: Range<usize>,
    /// The value as the configuration file carries it.
    pub value: Entry<String>,
}

impl JsonSchema for Settings {
    fn schema_name() -> Cow<'static, str> {
        "Settings".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Server settings by name, as in the engine's configuration file.",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        })
    }
}

/// Reads an engine table.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Engine {
    keys.alias("memory", "memory-limit");
    keys.alias("name", "kind");
    keys.alias("type", "kind");
    Engine {
        kind: keys.take("kind", |item, report| item.word(report)),
        version: keys.take("version", |item, report| item.integer(report, ENGINE_MAJOR)),
        memory_limit: keys.take("memory-limit", |item, report| item.size(report)),
        cpus: keys.take("cpus", |item, report| item.number(report, CPUS)),
        server_bin: keys.take("server-bin", |item, report| item.text(report)),
        settings: keys.section("settings", read_settings),
    }
}

fn read_settings(keys: &mut Keys<'_, '_>) -> Settings {
    let settings = keys.take_each(|name, name_span, item, report| {
        let value = match item.setting(report) {
            Some(value) => Entry::Given { value, span: item.span.clone() },
            None => Entry::Refused,
        };
        (name.to_string(), NamedSetting { name_span, value })
    });
    Settings(settings.into_iter().collect())
}

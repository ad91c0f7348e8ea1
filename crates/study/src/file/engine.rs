//! `[engine]`: the database server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use underlay_core::Bytes;

use crate::entry::{Entry, Section};
use crate::limits::{CORE_SPEED, CPUS, ENGINE_MAJOR};
use crate::plan::EngineKind;
use crate::reader::Keys;
use crate::section::*;

section! {
    /// The database server. Inside a design: what differs from the study's server.
    pub(crate) struct Engine as "Engine" {
        /// Which engine.
        "kind" kind: Entry<EngineKind> = One(word::<EngineKind>());
        /// Major version; the newest one found on the host, when left out.
        "version" version: Entry<u64> = One(whole_shown_as(ENGINE_MAJOR, 8..=18));
        /// Memory of the server and the page cache it fills. No limit, when left out.
        "memory-limit" memory_limit: Entry<Bytes> = One(size());
        /// Processors the server may use; fractions are allowed. No limit, when left out.
        "cpus" cpus: Entry<f64> = One(number(CPUS));
        /// Speed of each of these processors, and of the cores of a cluster's host that the server is placed on,
        /// compared with those of other designs. Emulated as less or more processor time, simulated as slower or faster
        /// cores. 1, when left out.
        "core-speed" core_speed: Entry<f64> = One(number(CORE_SPEED));
        /// Folder of the server programs; the distributions' folders, when left out.
        "server-bin" server_bin: Entry<String> = One(text());
        /// Server settings by name, as in the engine's configuration file.
        "settings" settings: Section<Settings> = table::<Settings>();
    }
    written_for {
        "memory" => "memory-limit", "name" => "kind", "type" => "kind", "cpu-speed" => "core-speed",
    }
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

impl Table for Settings {
    fn read(keys: &mut Keys<'_, '_>) -> Settings {
        let settings = keys.take_each(|name, name_span, item, report| {
            let value = match item.setting(report) {
                Some(value) => Entry::Given { value, span: item.span.clone() },
                None => Entry::Refused,
            };
            (name.to_string(), NamedSetting { name_span, value })
        });
        Settings(settings.into_iter().collect())
    }
}

//! `[[design]]`: a storage design, its devices and its volumes.

use schemars::JsonSchema;
use underlay_core::Bytes;

use crate::entry::{Entry, Section};
use crate::file::cluster::{self, Cluster};
use crate::file::{Engine, Profile};
use crate::plan::{Durability, FileSystem};
use crate::reader::Keys;
use crate::schema::Size;
use crate::words::Word;

/// A storage design.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Design {
    /// A built-in design to start from; keys given here take precedence over its keys.
    #[schemars(rename = "use")]
    pub base: Entry<String>,
    /// Name, unique in the study, used in file names. The built-in's name, when left out.
    pub name: Entry<String>,
    /// One line for people. When left out, the built-in's (with the name behind it where another design has it too), or the name.
    pub title: Entry<String>,
    /// What the design is.
    pub description: Entry<String>,
    /// What its numbers rest on.
    pub source: Entry<String>,
    /// Where the volumes live.
    pub datastore: Section<Datastore>,
    /// The volumes, as far as they differ from the study's `[volumes]`.
    pub volumes: Section<Volumes>,
    /// What differs from the study's `[engine]`.
    pub engine: Section<Engine>,
}

/// Where the volumes live: exactly one of the three.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("maxProperties" = 1))]
pub(crate) struct Datastore {
    /// A directory of the host: a mounted device, a network file system, anything.
    pub path: Section<PathStore>,
    /// Modelled devices under real file systems, in real time.
    pub emulated: Section<Emulated>,
    /// A hyper-converged cluster of modelled hosts.
    pub cluster: Section<Cluster>,
}

/// A directory of the host.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["directory"]))]
pub(crate) struct PathStore {
    /// The directory, which must exist. Underlay works in a folder of its own below it.
    pub directory: Entry<String>,
}

/// Modelled devices.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Emulated {
    /// The devices. At least one, here or in the built-in design.
    pub devices: Entry<Vec<Section<Device>>>,
    /// What survives a power cut: `profile` = as the device profile says.
    #[schemars(with = "Word<Durability>")]
    pub durability: Entry<Durability>,
    /// Directory for the files that hold the data. Underlay's own folder, when left out.
    pub backing: Entry<String>,
}

/// One modelled device.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(extend("x-required" = ["name", "profile"]))]
pub(crate) struct Device {
    /// Name, unique in the design, by which volumes refer to it.
    pub name: Entry<String>,
    /// A built-in device profile; `underlay list devices` shows them.
    pub profile: Entry<String>,
    /// How many such devices are striped into one. 1, when left out.
    #[schemars(range(min = 1, max = 64))]
    pub members: Entry<u64>,
    /// Values that differ from that profile.
    pub overrides: Section<Profile>,
}

/// The volumes of a database. `data`, `wal` and `backup` are required.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Volumes {
    /// Tables and indexes.
    pub data: Section<Volume>,
    /// The write-ahead log.
    pub wal: Section<Volume>,
    /// Backups.
    pub backup: Section<Volume>,
    /// Temporary files. On the data volume, when left out.
    pub temp: Section<Volume>,
}

/// One volume.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Volume {
    /// Size of the volume. Files behind it are sparse: only what is written takes space.
    #[schemars(with = "Size")]
    pub capacity: Entry<Bytes>,
    /// The device it lies on. The first one, when left out.
    pub device: Entry<String>,
    /// What it is formatted with (emulated datastores only).
    #[schemars(with = "Word<FileSystem>")]
    pub file_system: Entry<FileSystem>,
}

impl Volumes {
    /// Names of all volumes that a design can have, in their order.
    pub const NAMES: [&'static str; 4] = ["data", "wal", "backup", "temp"];
    /// How many of them every design must have.
    pub const REQUIRED: usize = 3;

    /// The volume of that position in [`Volumes::NAMES`].
    pub fn at(&self, position: usize) -> &Section<Volume> {
        [&self.data, &self.wal, &self.backup, &self.temp][position]
    }
}

/// Reads one design.
pub(crate) fn read(keys: &mut Keys<'_, '_>) -> Design {
    keys.alias("devices", "datastore");
    keys.alias("path", "datastore");
    keys.alias("emulated", "datastore");
    keys.alias("cluster", "datastore");
    keys.alias("storage", "datastore");
    keys.alias("volume", "volumes");
    Design {
        base: keys.take("use", |item, report| item.text(report)),
        name: keys.take("name", |item, report| item.text(report)),
        title: keys.take("title", |item, report| item.text(report)),
        description: keys.take("description", |item, report| item.text(report)),
        source: keys.take("source", |item, report| item.text(report)),
        datastore: keys.section("datastore", read_datastore),
        volumes: keys.section("volumes", read_volumes),
        engine: keys.section("engine", super::engine::read),
    }
}

/// Reads `volumes`, of the study or of a design.
pub(crate) fn read_volumes(keys: &mut Keys<'_, '_>) -> Volumes {
    keys.alias("log", "wal");
    keys.alias("redo", "wal");
    keys.alias("tmp", "temp");
    Volumes {
        data: keys.section("data", read_volume),
        wal: keys.section("wal", read_volume),
        backup: keys.section("backup", read_volume),
        temp: keys.section("temp", read_volume),
    }
}

fn read_volume(keys: &mut Keys<'_, '_>) -> Volume {
    keys.alias("size", "capacity");
    keys.alias("fs", "file-system");
    Volume {
        capacity: keys.take("capacity", |item, report| item.size(report)),
        device: keys.take("device", |item, report| item.text(report)),
        file_system: keys.take("file-system", |item, report| item.word(report)),
    }
}

fn read_datastore(keys: &mut Keys<'_, '_>) -> Datastore {
    keys.alias("directory", "path");
    keys.alias("devices", "emulated");
    keys.alias("hosts", "cluster");
    Datastore {
        path: keys.section("path", |keys| PathStore {
            directory: keys.take("directory", |item, report| item.text(report)),
        }),
        emulated: keys.section("emulated", |keys| Emulated {
            devices: keys.sections("devices", read_device),
            durability: keys.take("durability", |item, report| item.word(report)),
            backing: keys.take("backing", |item, report| item.text(report)),
        }),
        cluster: keys.section("cluster", cluster::read),
    }
}

fn read_device(keys: &mut Keys<'_, '_>) -> Device {
    Device {
        name: keys.take("name", |item, report| item.text(report)),
        profile: keys.take("profile", |item, report| item.text(report)),
        members: keys.take("members", |item, report| item.integer(report, 1..=64)),
        overrides: keys.section("overrides", super::profile::read),
    }
}

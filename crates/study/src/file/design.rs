//! `[[design]]`: a storage design, its devices and its volumes.

use underlay_core::{Bytes, Nanos};

use crate::entry::{Entry, Section};
use crate::file::cluster::Cluster;
use crate::file::{Client, Engine, Profile};
use crate::limits::VOLUMES_PER_KIND;
use crate::plan::{Durability, FileSystem, Layout};
use crate::section::*;

section! {
    /// A storage design.
    pub(crate) struct Design as "Design" {
        /// A built-in design to start from; keys given here take precedence over its keys.
        "use" base: Entry<String> = One(text());
        /// Name, unique in the study, used in file names. The built-in's name, when left out.
        "name" name: Entry<String> = One(text());
        /// One line for people. When left out, the built-in's (with the name behind it where
        /// another design has it too), or the name.
        "title" title: Entry<String> = One(text());
        /// What the design is.
        "description" description: Entry<String> = One(text());
        /// What its numbers rest on.
        "source" source: Entry<String> = One(text());
        /// Where the volumes live.
        "datastore" datastore: Section<Datastore> = table::<Datastore>();
        /// The volumes, as far as they differ from the study's `[volumes]`.
        "volumes" volumes: Section<Volumes> = table::<Volumes>();
        /// What differs from the study's `[engine]`.
        "engine" engine: Section<Engine> = table::<Engine>();
        /// What differs from the study's `[client]`.
        "client" client: Section<Client> = table::<Client>();
    }
    written_for {
        "devices" => "datastore", "path" => "datastore", "emulated" => "datastore",
        "cluster" => "datastore", "storage" => "datastore", "volume" => "volumes",
    }
}

section! {
    /// Where the volumes live: exactly one of the three.
    pub(crate) struct Datastore as "Datastore" {
        /// A directory of the host: a mounted device, a network file system, anything.
        "path" path: Section<PathStore> = table::<PathStore>();
        /// Modelled devices under real file systems, in real time.
        "emulated" emulated: Section<Emulated> = table::<Emulated>();
        /// A hyper-converged cluster of modelled hosts.
        "cluster" cluster: Section<Cluster> = table::<Cluster>();
    }
    written_for {
        "directory" => "path", "devices" => "emulated", "hosts" => "cluster",
    }
    limits { "maxProperties": 1 }
}

section! {
    /// A directory of the host.
    pub(crate) struct PathStore as "PathStore" {
        /// The directory, which must exist. Underlay works in a folder of its own below it.
        "directory" directory: Entry<String> = One(text());
    }
    limits { "required": ["directory"] }
}

section! {
    /// Modelled devices.
    pub(crate) struct Emulated as "Emulated" {
        /// The devices. At least one, here or in the built-in design.
        "devices" devices: Entry<Vec<Section<Device>>> = tables::<Device>();
        /// Each direction of the link between the host and all devices per second, written as a
        /// size: 16 Gbit/s Fibre Channel = "1600MB". Each device is connected directly, when left
        /// out.
        "link" link: Entry<u64> = One(rate());
        /// What that link adds to every request, both ways together. Nothing, when left out.
        "link-latency" link_latency: Entry<Nanos> = One(time());
        /// What survives a power cut: `profile` = as the device profile says.
        "durability" durability: Entry<Durability> = One(word::<Durability>());
        /// Directory for the files that hold the data. Underlay's own folder, when left out.
        "backing" backing: Entry<String> = One(text());
    }
}

section! {
    /// One modelled device.
    pub(crate) struct Device as "Device" {
        /// Name, unique in the design, by which volumes refer to it.
        "name" name: Entry<String> = One(text());
        /// A built-in device profile; `underlay list devices` shows them.
        "profile" profile: Entry<String> = One(text());
        /// How many such devices make up this one. 1, when left out; 2, with `layout = "mirror"`.
        "members" members: Entry<u64> = One(whole(1..=64));
        /// How the members hold the data: `stripe` = each a part of it, `mirror` = each all of it.
        "layout" layout: Entry<Layout> = One(word::<Layout>());
        /// Values that differ from that profile.
        "overrides" overrides: Section<Profile> = table::<Profile>();
    }
    limits { "required": ["name", "profile"] }
}

section! {
    /// The volumes of a database. `data`, `wal` and `backup` are required. A block load uses those that
    /// are there, at least one.
    pub(crate) struct Volumes as "Volumes" {
        /// Tables and indexes.
        "data" data: Section<Volume> = table::<Volume>();
        /// The write-ahead log.
        "wal" wal: Section<Volume> = table::<Volume>();
        /// Backups.
        "backup" backup: Section<Volume> = table::<Volume>();
        /// Temporary files. On the data volume, when left out.
        "temp" temp: Section<Volume> = table::<Volume>();
    }
    written_for {
        "log" => "wal", "redo" => "wal", "tmp" => "temp",
    }
}

section! {
    /// One volume.
    pub(crate) struct Volume as "Volume" {
        /// Size of the volume. Files behind it are sparse: only what is written takes space.
        "capacity" capacity: Entry<Bytes> = One(size());
        /// The device it lies on. The first one, when left out.
        "device" device: Entry<String> = One(text());
        /// What it is formatted with (emulated datastores only).
        "file-system" file_system: Entry<FileSystem> = One(word::<FileSystem>());
        /// So many equal volumes, `data-1`, `data-2` and so on, for a block load. A database has one of
        /// each.
        "count" count: Entry<u64> = One(whole(VOLUMES_PER_KIND));
    }
    written_for {
        "size" => "capacity", "fs" => "file-system", "number" => "count",
    }
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

//! `underlay volume create`: creates a volume, and its datastore if there is none yet.

use super::data_directory::{data_directory, program, stop};
use super::show;
use crate::cli::designs::{datastore_of, print_problems};
use crate::cli::whole_number::whole_number;
use crate::lab::interrupt;
use crate::stop::{Stop, chain};
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use underlay_core::{Bytes, RootSeed};
use underlay_datastore::persistent::{
    DataDirectory, Description, DeviceDescription, NewPolicy, NewVolume, VolumeStatus, check_mount,
};
use underlay_datastore::{DatastoreError, Durability};
use underlay_host::FileSystem;
use underlay_model::cluster::ClusterSpec;
use underlay_model::{DeviceProfile, HostLink, builtin};
use underlay_study::{DatastoreKind, Source, parse_profile};

/// Arguments of `underlay volume create`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of the datastore; created when it does not exist.
    directory: PathBuf,
    /// The volume's name: lower-case letters, digits and `-`.
    name: String,
    /// Its size, such as `20GiB`. Only written data takes space on this host.
    #[arg(long)]
    size: Bytes,
    /// Format it, and mount it while the datastore runs [default: a bare block device].
    #[arg(long, value_name = "ext4|xfs", value_parser = file_system)]
    format: Option<FileSystem>,
    /// An existing directory to mount it on [default: a directory of the datastore].
    #[arg(long, value_name = "DIR", requires = "format")]
    mount: Option<PathBuf>,
    /// The device to place it on, if the datastore has several [default: the first].
    #[arg(long, value_name = "DEVICE")]
    on: Option<String>,
    #[command(flatten)]
    policy: PolicyArguments,
    #[command(flatten)]
    datastore: NewDatastore,
    /// Print the volume as JSON.
    #[arg(long)]
    json: bool,
}

/// The storage policy of a volume on a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "On a cluster")]
struct PolicyArguments {
    /// Failures of hosts or devices to tolerate, 0 to 2 [default: 1].
    #[arg(long, value_name = "N")]
    failures: Option<u8>,
    /// Tolerate them by parity (RAID-5, RAID-6) instead of copies.
    #[arg(long)]
    erasure_coding: bool,
    /// Stripe width: devices per copy, 1 to 12 [default: 1].
    #[arg(long, value_name = "N")]
    stripe_width: Option<u8>,
    /// Limit of I/Os per second, in units of 32 KiB.
    #[arg(long, value_name = "N")]
    iops_limit: Option<u32>,
    /// Disable block checksums: bit rot is neither detected nor repaired.
    #[arg(long)]
    no_checksum: bool,
    /// Share of its size to reserve at once, 0 to 100 [default: 0].
    #[arg(long, value_name = "PERCENT")]
    reserve: Option<u8>,
}

impl PolicyArguments {
    /// `None` when no option was given.
    fn policy(&self) -> Option<NewPolicy> {
        let asks = self.failures.is_some()
            || self.erasure_coding
            || self.stripe_width.is_some()
            || self.iops_limit.is_some()
            || self.no_checksum
            || self.reserve.is_some();
        asks.then(|| NewPolicy {
            failures_to_tolerate: self.failures.unwrap_or(1),
            erasure_coding: self.erasure_coding,
            stripe_width: self.stripe_width.unwrap_or(1),
            iops_limit: self.iops_limit,
            checksum: !self.no_checksum,
            space_reservation_percent: self.reserve.unwrap_or(0),
        })
    }
}

/// The hardware of a new datastore.
#[derive(Debug, Args)]
#[command(next_help_heading = "For a new datastore")]
struct NewDatastore {
    /// A modelled device: a built-in profile (`underlay list devices`) or a profile file; may be repeated. Volumes on
    /// the same device compete for it.
    #[arg(long = "device", value_name = "[NAME=]PROFILE")]
    devices: Vec<String>,
    /// A built-in design (`underlay list designs`), a design file, or a device: its devices, or its whole cluster. The
    /// options under "On a cluster" set the policy of each volume.
    #[arg(long, value_name = "DESIGN", conflicts_with = "devices")]
    design: Option<String>,
    /// What a power cut loses: `profile` (as the device), `flushed` (everything unflushed), `acknowledged`
    /// (nothing), `lying` (flushed data too; not on a cluster).
    #[arg(long, value_parser = durability)]
    durability: Option<Durability>,
    /// Root seed of the device models.
    #[arg(long, value_parser = whole_number, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Also accept NBD clients on this loopback address; port 0 = any free port.
    #[arg(long, value_name = "ADDRESS:PORT")]
    nbd: Option<SocketAddr>,
}

fn file_system(word: &str) -> Result<FileSystem, String> {
    FileSystem::from_word(word).ok_or_else(|| "use ext4 or xfs".to_string())
}

fn durability(word: &str) -> Result<Durability, String> {
    Durability::from_word(word)
        .ok_or_else(|| "use profile, flushed, acknowledged or lying".to_string())
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<(), Stop> {
    // Everything is validated before a datastore is created.
    let program = program()?;
    let volume = wanted(arguments)?;
    let directory_existed = arguments.directory.exists();
    let is_new = !arguments.directory.join("datastore.json").exists();
    interrupt::install();
    let store = if is_new { make(arguments)? } else { existing(arguments)? };
    match bring_up(&store, &program, volume) {
        Ok(created) if arguments.json => show::json(&created),
        Ok(created) => {
            for warning in &created.warnings {
                errln!("underlay: {warning}");
            }
            show::volume(&created);
            Ok(())
        }
        Err(reason) => {
            if is_new {
                undo(store, directory_existed);
            }
            Err(reason)
        }
    }
}

/// The requested volume.
fn wanted(arguments: &Arguments) -> Result<NewVolume, Stop> {
    let mount = arguments.mount.as_deref().map(absolute).transpose()?;
    if let Some(target) = &mount {
        check_mount(&arguments.directory, target).map_err(|error| stop(&error))?;
    }
    Ok(NewVolume {
        name: arguments.name.clone(),
        capacity_bytes: arguments.size.0,
        device: arguments.on.clone(),
        policy: arguments.policy.policy(),
        file_system: arguments.format.map(|system| system.as_str().to_string()),
        mount,
    })
}

/// Starts the datastore and creates the volume. An interrupt in between undoes both; a step in progress is completed first.
fn bring_up(
    store: &DataDirectory,
    program: &Path,
    volume: NewVolume,
) -> Result<VolumeStatus, Stop> {
    let interrupted = || Stop::interrupted("interrupted; the volume was not created");
    let started = store.start(program, &interrupt::requested);
    if matches!(started, Err(DatastoreError::GivenUp)) || interrupt::requested() {
        return Err(interrupted());
    }
    let connection = started.map_err(|error| stop(&error))?;
    let name = volume.name.clone();
    let created = connection.create(volume).map_err(|error| stop(&error))?;
    if interrupt::requested() {
        connection.remove(&name).map_err(|error| stop(&error))?;
        return Err(interrupted());
    }
    Ok(created)
}

/// Removes a datastore that was created for a volume that failed. If that fails too, the reason is printed.
fn undo(store: DataDirectory, directory_existed: bool) {
    match store.withdraw(directory_existed) {
        Ok(true) => {}
        Ok(false) => {
            errln!("underlay: kept the new datastore: another command has created a volume in it");
        }
        Err(error) => errln!("underlay: could not remove the new datastore: {}", chain(&error)),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Stop> {
    path.canonicalize()
        .map_err(|error| Stop::bad_input(format!("could not resolve {}: {error}", path.display())))
}

fn existing(arguments: &Arguments) -> Result<DataDirectory, Stop> {
    let new = &arguments.datastore;
    let asks_for_new = !new.devices.is_empty()
        || new.design.is_some()
        || new.durability.is_some()
        || new.seed.is_some()
        || new.nbd.is_some();
    if asks_for_new {
        return Err(Stop::bad_input(format!(
            "there is already a datastore in {}; its devices, durability, seed and address cannot be changed",
            arguments.directory.display()
        ))
        .with_hint("omit these options; use `--on DEVICE` to choose one of its devices"));
    }
    data_directory(&arguments.directory)
}

fn make(arguments: &Arguments) -> Result<DataDirectory, Stop> {
    let new = &arguments.datastore;
    let parts = match &new.design {
        Some(design) => of_design(design)?,
        None if new.devices.is_empty() => {
            return Err(Stop::bad_input(format!(
                "there is no datastore in {} yet, and a new one needs a device",
                arguments.directory.display()
            ))
            .with_hint(
                "add one, such as `--device dc1500m-960`, or a whole cluster, such as `--design \
                 kingston-nvme-vsan`; `underlay list devices` and `underlay list designs` show all",
            ));
        }
        None => Parts {
            devices: new.devices.iter().map(|text| device(text)).collect::<Result<Vec<_>, _>>()?,
            link: None,
            cluster: None,
            durability: None,
        },
    };
    if let (Some(spec), Some(durability)) = (&parts.cluster, new.durability) {
        honours(spec, durability)?;
    }
    let description = Description {
        seed: RootSeed(new.seed.unwrap_or(1)),
        durability: new.durability.or(parts.durability).unwrap_or(Durability::Profile),
        devices: parts.devices,
        link: parts.link,
        cluster: parts.cluster,
        nbd_address: new.nbd,
        volumes: Vec::new(),
    };
    DataDirectory::create(&arguments.directory, &description).map_err(|error| stop(&error))
}

/// A cluster loses what its cache devices lose, so not every durability is possible.
fn honours(spec: &ClusterSpec, durability: Durability) -> Result<(), Stop> {
    let mut caches = spec.hosts.iter().flat_map(|host| &host.groups).map(|group| &group.cache);
    match durability {
        Durability::Lying => Err(Stop::bad_input(
            "`--durability lying` is for single devices: the cluster model does not track the buffers of cache devices that \
             ignore flushes",
        )
        .with_hint(
            "use `flushed` (a power cut loses unflushed data), or `--device` instead of a cluster",
        )),
        Durability::Flushed => match caches.find(|cache| cache.write_buffer.is_none()) {
            None => Ok(()),
            Some(cache) => Err(Stop::bad_input(format!(
                "`--durability flushed` has no effect on this cluster: its cache device `{}` has no volatile buffer",
                cache.name
            ))
            .with_hint("omit `--durability`, or choose another design")),
        },
        Durability::Profile | Durability::Acknowledged => Ok(()),
    }
}

/// What a design is made of.
struct Parts {
    devices: Vec<DeviceDescription>,
    link: Option<HostLink>,
    cluster: Option<ClusterSpec>,
    /// What a design of single devices says of it.
    durability: Option<Durability>,
}

fn of_design(name: &str) -> Result<Parts, Stop> {
    match datastore_of(name)? {
        DatastoreKind::Emulated { backing: Some(_), .. } => Err(Stop::bad_input(format!(
            "design `{name}` sets where its data is stored (`backing`), but a datastore keeps its data in its own directory"
        ))
        .with_hint("remove `backing` from the design")),
        DatastoreKind::Emulated { devices, link, durability, .. } => {
            let device = |(name, profile)| DeviceDescription { name, profile };
            Ok(Parts {
                devices: devices.into_iter().map(device).collect(),
                link,
                cluster: None,
                durability: Some(durability),
            })
        }
        DatastoreKind::Cluster(plan) => {
            Ok(Parts {
                devices: Vec::new(),
                link: None,
                cluster: Some(plan.spec),
                durability: None,
            })
        }
        DatastoreKind::Path { .. } => {
            Err(Stop::bad_input(format!("design `{name}` is real storage; use it directly")))
        }
    }
}

/// `PROFILE`, `NAME=PROFILE`, where a profile is built in or a file.
fn device(text: &str) -> Result<DeviceDescription, Stop> {
    let (name, profile) = text.split_once('=').unwrap_or(("", text));
    let profile = match builtin::find(profile) {
        Some(profile) => profile,
        None if Path::new(profile).is_file() => profile_file(Path::new(profile))?,
        None => {
            return Err(Stop::bad_input(format!("there is no device profile `{profile}`"))
                .with_hint(
                    "`underlay list devices` shows the built-in ones; a profile file works too",
                ));
        }
    };
    let name = if name.is_empty() { profile.name.clone() } else { name.to_string() };
    Ok(DeviceDescription { name, profile })
}

fn profile_file(path: &Path) -> Result<DeviceProfile, Stop> {
    let text = underlay_host::read_small_text(path)
        .map_err(|error| Stop::bad_input(format!("could not read {}: {error}", path.display())))?;
    let source = Source { name: path.display().to_string(), text };
    parse_profile(&source).map_err(|problems| print_problems(&problems))
}

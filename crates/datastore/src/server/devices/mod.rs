//! Single devices under an export: each volume's bytes in a file of its own, its times by the model of its device.
//!
//! Data is moved at once ([`volume`], and what a power cut could take of it: [`undo_log`]) and the request submitted to the
//! model ([`engine`]), which says when it would complete. It is answered then, or immediately if the host was slower than
//! the device. Requests to devices without delay, and all requests while timing is off, are answered at once.

mod commands;
mod engine;
#[cfg(test)]
mod engine_tests;
pub(crate) mod undo_log;
#[cfg(test)]
mod undo_log_tests;
mod volume;

use std::io;

use rustix::io::Errno;
use underlay_core::{Bytes, Durability, Nanos, RootSeed};
use underlay_export::path_cost::PathCost;
use underlay_export::{Answer, Asked, BackEnd, BlockRequest, Exchange, Extent, Force, Zeroing};
use underlay_model::{DeviceProfile, Request, StoreDevice};

use crate::config::{HostLinkConfig, ServerConfig, VolumeConfig};
use crate::error::DatastoreError;
use engine::{Effect, Engine, InFlight};
use undo_log::PowerCut;
use volume::VolumeData;

/// Volatile bytes of a device that has no write buffer but is said to lose what is not flushed: the cache of
/// a disk.
const DEFAULT_VOLATILE: Bytes = Bytes::from_mib(32);

/// Devices and the volumes on them. `C` names the client that is answered.
pub(crate) struct Devices<C> {
    /// When requests are answered.
    pub(super) engine: Engine<C>,
    /// By number; the place of a removed volume stays empty.
    volumes: Vec<Option<DeviceVolume>>,
    /// How many acknowledged bytes a power cut can take away, per device.
    volatile_bytes: Vec<u64>,
    /// Flushes are acknowledged and ignored.
    lies: bool,
    seed: RootSeed,
    /// Requests whose data could not be moved.
    pub(super) errors: u64,
}

/// One volume on a device.
struct DeviceVolume {
    name: String,
    data: VolumeData,
}

impl<C> Devices<C> {
    /// The devices of a server, without volumes.
    pub(crate) fn new(config: &ServerConfig) -> Devices<C> {
        let (seed, durability) = (config.root_seed(), config.durability);
        let profiles = config.devices.iter().map(|device| device.profile.to_profile());
        let engine = Engine::new(store_devices(config), Vec::new(), seed);
        Devices {
            engine: engine.behind(config.link.as_ref().map(HostLinkConfig::to_link)),
            volumes: Vec::new(),
            volatile_bytes: profiles.map(|it| volatile_bytes(&it, durability).0).collect(),
            lies: durability == Durability::Lying,
            seed,
            errors: 0,
        }
    }

    /// Adds a volume and returns its number. Requests in flight to others are not disturbed.
    pub(super) fn add_volume(
        &mut self,
        now: Nanos,
        volume: &VolumeConfig,
    ) -> Result<usize, DatastoreError> {
        let volatile = self.volatile_bytes[volume.device];
        let data = VolumeData::open(&volume.backing_file, volume.capacity_bytes, volatile)?;
        let number = self.engine.add_volume(now, volume.device, volume.capacity_bytes);
        self.volumes.push(Some(DeviceVolume { name: volume.name.clone(), data }));
        assert_eq!(number + 1, self.volumes.len(), "bytes and times of a volume have one number");
        Ok(number)
    }

    /// What is volatile meets its fate. Nothing is in flight any more.
    pub(super) fn lose_volatile(&mut self) -> io::Result<PowerCut> {
        let cycle = self.engine.power_cycles();
        let mut total = PowerCut::default();
        for DeviceVolume { name, data } in self.volumes.iter_mut().flatten() {
            let mut random = self.seed.stream(&format!("power-cut.{name}"), cycle);
            let outcome = data.power_cut(&mut random)?;
            total.kept += outcome.kept;
            total.lost += outcome.lost;
            total.torn += outcome.torn;
        }
        Ok(total)
    }

    /// Bytes of a volume that a power cut could take away now.
    pub(super) fn volatile_bytes(&self, volume: usize) -> u64 {
        let volume = self.volumes.get(volume).and_then(Option::as_ref);
        volume.map_or(0, |volume| volume.data.volatile_bytes())
    }

    fn data(&mut self, volume: usize) -> Result<&mut VolumeData, Errno> {
        let volume = self.volumes.get_mut(volume).and_then(Option::as_mut);
        volume.map(|volume| &mut volume.data).ok_or(Errno::NOENT)
    }

    /// Counts and reports a failure of the backing file.
    fn moved<T>(&mut self, outcome: io::Result<T>) -> Result<T, Errno> {
        outcome.map_err(|error| {
            self.errors += 1;
            tracing::error!("the backing file failed: {error}");
            if error.kind() == io::ErrorKind::StorageFull { Errno::NOSPC } else { Errno::IO }
        })
    }

    /// What becomes of a request whose data has been moved: it is answered at once, or when the model says so.
    fn answer_or_submit(
        &mut self,
        request: &Request,
        in_flight: InFlight<C>,
        exchange: &mut Exchange<C>,
    ) {
        if self.engine.is_immediate(in_flight.volume) {
            self.answer_now(request, in_flight, exchange);
        } else {
            self.engine.submit(exchange.clock.now(), request, in_flight);
        }
    }

    fn answer_now(
        &mut self,
        request: &Request,
        in_flight: InFlight<C>,
        exchange: &mut Exchange<C>,
    ) {
        let InFlight { client, volume, arrived, bytes, effect, buffer, .. } = in_flight;
        take_effect(&mut self.volumes, volume, &effect);
        exchange.answers.push(Answer {
            client: Some(client),
            volume,
            operation: request.operation,
            bytes,
            arrived,
            modelled: None,
            early: exchange.path.compensation_of(request.operation),
            failed: false,
            buffer,
            wanted: 0..bytes as usize,
        });
    }
}

impl<C> BackEnd<C> for Devices<C> {
    fn is_powered(&self) -> bool {
        self.engine.is_powered()
    }

    /// Devices have a time of their own for a flush.
    fn is_durable(&self) -> bool {
        false
    }

    fn submit(
        &mut self,
        request: BlockRequest<'_, C>,
        exchange: &mut Exchange<C>,
    ) -> Result<(), Errno> {
        let BlockRequest { client, volume, arrived, asked } = request;
        let lies = self.lies;
        let data = self.data(volume)?;
        let mut in_flight = InFlight::new(client, volume, arrived);
        let request = match asked {
            Asked::Read { offset, length } => {
                in_flight.buffer = exchange.buffers.take(length as usize);
                let outcome = data.read(offset, &mut in_flight.buffer[..length as usize]);
                self.moved(outcome)?;
                Request::read(offset, length)
            }
            Asked::Write { offset, data: bytes, force } => {
                let outcome = data.write(offset, bytes);
                self.moved(outcome)?;
                let length = bytes.len() as u32;
                let forced = force == Force::UnitAccess && !lies;
                if forced {
                    in_flight.effect = Effect::Durable { offset, length };
                }
                Request { force_unit_access: forced, ..Request::write(offset, length) }
            }
            Asked::Flush if lies => {
                self.answer_now(&Request::flush(), in_flight, exchange);
                return Ok(());
            }
            Asked::Flush => {
                if let Some(generation) = data.flush_arrives() {
                    in_flight.effect = Effect::Flushed(generation);
                }
                Request::flush()
            }
            Asked::Discard { offset, length, zeroing } => {
                let outcome = data.discard(offset, length, zeroing);
                self.moved(outcome)?;
                // The model's request is shorter than what a discard may cover; its length costs nothing.
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                match zeroing {
                    Zeroing::FreesSpace => Request::discard(offset, length),
                    Zeroing::KeepsSpace => Request::write(offset, length),
                }
            }
        };
        in_flight.bytes = request.length_bytes;
        self.answer_or_submit(&request, in_flight, exchange);
        Ok(())
    }

    fn take_due(&mut self, now: Nanos, exchange: &mut Exchange<C>) {
        let Devices { engine, volumes, .. } = self;
        let Exchange { path, answers, .. } = exchange;
        engine.take_due(now, path, |answer, effect| {
            if !answer.failed {
                // Before the answer: once the client has it, a power cut must not take anything.
                take_effect(volumes, answer.volume, &effect);
            }
            answers.push(answer);
        });
    }

    fn next_answer(&self, path: &PathCost) -> Option<Nanos> {
        self.engine.next_answer(path)
    }

    fn keeps_time(&self) -> bool {
        self.engine.keeps_time()
    }

    fn extents(&mut self, volume: usize, offset: u64, length: u32) -> Result<Vec<Extent>, Errno> {
        let outcome = self.data(volume)?.extents(offset, length);
        self.moved(outcome)
    }

    fn probe(&mut self, volume: usize, buffer: &mut [u8]) -> Result<(), Errno> {
        let outcome = self.data(volume)?.read(0, buffer);
        self.moved(outcome)
    }

    fn in_flight(&self, volume: usize) -> u64 {
        self.engine.in_flight(volume)
    }

    fn remove_volume(&mut self, now: Nanos, volume: usize) {
        if let Some(volume) = self.volumes.get_mut(volume) {
            *volume = None;
        }
        self.engine.remove_volume(now, volume);
    }
}

/// What becomes durable when a request is answered does so.
fn take_effect(volumes: &mut [Option<DeviceVolume>], volume: usize, effect: &Effect) {
    let Some(Some(DeviceVolume { data, .. })) = volumes.get_mut(volume) else { return };
    match *effect {
        Effect::Nothing => {}
        Effect::Durable { offset, length } => data.persist(offset, u64::from(length)),
        Effect::Flushed(generation) => data.flush_completes(generation),
    }
}

/// The devices as the models see them under this durability: one that can lose what it acknowledged
/// must drain its buffer for a flush, one that cannot need not.
fn store_devices(config: &ServerConfig) -> Vec<StoreDevice> {
    let device = |device: &crate::config::DeviceConfig| StoreDevice {
        name: device.name.clone(),
        profile: under(config.durability, device.profile.to_profile()),
    };
    config.devices.iter().map(device).collect()
}

/// A device as its model sees it under this durability.
pub(super) fn under(durability: Durability, profile: DeviceProfile) -> DeviceProfile {
    match durability {
        Durability::Profile | Durability::Lying => profile,
        Durability::Flushed => DeviceProfile { power_loss_protected: false, ..profile },
        Durability::Acknowledged => DeviceProfile { power_loss_protected: true, ..profile },
    }
}

/// How many acknowledged bytes a power cut can take away.
fn volatile_bytes(profile: &DeviceProfile, durability: Durability) -> Bytes {
    match durability {
        Durability::Profile => profile.volatile_bytes(),
        Durability::Acknowledged => Bytes::ZERO,
        Durability::Flushed | Durability::Lying => {
            profile.write_buffer.map_or(DEFAULT_VOLATILE, |buffer| buffer.capacity)
        }
    }
}

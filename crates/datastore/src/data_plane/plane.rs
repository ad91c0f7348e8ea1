//! The data plane: carries out data commands on the bytes of components.

use super::block_store::{BLOCK_BYTES, BlockStore, StoreError, StoreMaker};
use super::components::Components;
use super::finding::Finding;
use super::held::{Blocks, Held};
use super::intent::IntentLog;
use super::row::Row;
use super::unmarked::{MarkLog, SharedLog};
use crate::reduction::ChangedBlocks;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use underlay_model::RequestId;
use underlay_model::cluster::{ComponentId, DataCommand, DurabilityPoint, Piece, SetKind};

/// A request's bytes while it is in flight.
#[derive(Clone, Debug)]
struct Buffer {
    bytes: Vec<u8>,
    readable: bool,
}

/// Names of requests are numbers that are not chosen by an attacker: one multiplication spreads them (Knuth's
/// multiplicative hashing), where a keyed hash costs as much as moving the data of a small request.
#[derive(Clone, Copy, Debug, Default)]
struct RequestHasher(u64);

impl Hasher for RequestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // The table uses the highest and the lowest bits.
        let product = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}

/// How a request's data ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// The bytes that were read, or the buffer that was written.
    Bytes(Vec<u8>),
    /// At least one block is lost, or was not stored: the request must be answered with an I/O error.
    Unreadable(Vec<u8>),
}

/// Bytes of all components, and of the requests in flight.
///
/// The driver stages a request, submits it to the cluster, executes every [`DataCommand`] in order, and takes the buffer back
/// when the request is finished. All results are the same whatever the store is.
#[derive(Debug)]
pub struct DataPlane<M: StoreMaker> {
    maker: M,
    components: Components<M::Store>,
    buffers: HashMap<RequestId, Buffer, BuildHasherDefault<RequestHasher>>,
    findings: Vec<Finding>,
}

impl<M: StoreMaker> DataPlane<M> {
    /// Without components.
    pub fn new(maker: M) -> DataPlane<M> {
        DataPlane {
            maker,
            components: Components {
                held: Vec::new(),
                moment: 0,
                count: 0,
                volatile: 0,
                sharers: 1,
                intents: None,
                marks: None,
                failures: 0,
                failure: None,
            },
            buffers: HashMap::default(),
            findings: Vec::new(),
        }
    }

    /// Adds a component that exists already: after a restart.
    pub fn attach(&mut self, component: ComponentId, store: M::Store, durability: DurabilityPoint) {
        // Two stores of one component would each get a part of its writes.
        assert!(self.store(component).is_none(), "component {component} is attached once");
        self.components.put(component, Held::new(store, durability));
    }

    /// From now on what a command is about to store is noted before.
    pub fn note_intents(&mut self, log: Box<dyn IntentLog>) {
        self.components.intents = Some(log);
    }

    /// From now on blocks are noted of which a component's medium does not even take that they are lost.
    pub fn keep_marks(&mut self, log: Box<dyn MarkLog>) {
        let log: SharedLog = Arc::new(Mutex::new(log));
        for (index, held) in self.components.held.iter_mut().enumerate() {
            if let Some(held) = held {
                held.keep_marks(ComponentId(index as u32), &log);
            }
        }
        self.components.marks = Some(log);
    }

    /// Blocks that such a log has had since an earlier process.
    pub fn recall_marks(&mut self, component: ComponentId, blocks: Range<u64>) {
        self.with(component, |held| held.recall_marks(blocks));
    }

    /// Takes the stores out: what is left when everything else is forgotten.
    pub fn into_stores(self) -> impl Iterator<Item = (ComponentId, M::Store)> {
        let held = self.components.held.into_iter().enumerate();
        held.filter_map(|(index, held)| Some((ComponentId(index as u32), held?.into_store())))
    }

    /// The bytes of a write that is about to be submitted.
    pub fn stage_write(&mut self, request: RequestId, bytes: Vec<u8>) {
        self.buffers.insert(request, Buffer { bytes, readable: true });
    }

    /// The buffer of a read that is about to be submitted.
    pub fn stage_read(&mut self, request: RequestId, buffer: Vec<u8>) {
        self.buffers.insert(request, Buffer { bytes: buffer, readable: true });
    }

    /// The bytes of a request in flight, to be completed; none if it was not staged.
    pub fn staged_mut(&mut self, request: RequestId) -> Option<&mut [u8]> {
        Some(&mut self.buffers.get_mut(&request)?.bytes)
    }

    /// A request in flight is to be answered with an I/O error.
    pub fn spoil(&mut self, request: RequestId) {
        if let Some(buffer) = self.buffers.get_mut(&request) {
            buffer.readable = false;
        }
    }

    /// Takes the buffer of a finished request; none if it was not staged.
    pub fn finish(&mut self, request: RequestId) -> Option<Delivered> {
        let buffer = self.buffers.remove(&request)?;
        Some(if buffer.readable {
            Delivered::Bytes(buffer.bytes)
        } else {
            Delivered::Unreadable(buffer.bytes)
        })
    }

    /// From now on, which blocks of a component change is noted.
    pub fn track(&mut self, component: ComponentId) {
        self.with(component, Held::track);
    }

    /// The blocks of a component that changed; none unless they are noted.
    pub fn changed_mut(&mut self, component: ComponentId) -> Option<&mut ChangedBlocks> {
        self.components.get_mut(component)?.changed_mut()
    }

    /// The first component from this one on of which a block has changed.
    pub fn next_changed(&self, from: ComponentId) -> Option<ComponentId> {
        let rest = self.components.held.get(from.0 as usize..)?;
        let has_changed =
            |held: &Held<M::Store>| held.changed().is_some_and(|changed| changed.count() > 0);
        let at = rest.iter().position(|held| held.as_ref().is_some_and(has_changed))?;
        Some(ComponentId(from.0 + at as u32))
    }

    /// Blocks that changed and were not taken out yet, of all components.
    pub fn changed_blocks(&self) -> u64 {
        let held = self.components.held.iter().flatten();
        held.filter_map(Held::changed).map(ChangedBlocks::count).sum()
    }

    /// What was noticed since the last call.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Why a store did not take what it was given, if that happened since the last call.
    pub fn take_failure(&mut self) -> Option<StoreError> {
        self.components.failure.take()
    }

    /// A component's store, for inspection.
    pub fn store(&self, component: ComponentId) -> Option<&M::Store> {
        self.components.held.get(component.0 as usize)?.as_ref().map(Held::store)
    }

    /// A component's store; what is changed here happens behind the data plane's back.
    pub fn store_mut(&mut self, component: ComponentId) -> Option<&mut M::Store> {
        self.components.get_mut(component).map(Held::store_mut)
    }

    /// The maker of stores.
    pub fn maker(&mut self) -> &mut M {
        &mut self.maker
    }

    /// Carries out one command.
    pub fn execute(&mut self, command: &DataCommand) {
        self.components.moment += 1;
        match command {
            DataCommand::Create { component, length_bytes, device, durability } => {
                // A store that cannot be made is a component that reads as lost.
                if let Ok(store) = self.maker.create(*component, *device, *length_bytes) {
                    self.components.put(*component, Held::new(store, *durability));
                }
            }
            DataCommand::Remove { component } => self.remove(*component),
            DataCommand::Blank { component } => self.with(*component, Held::blank),
            DataCommand::Read { request, buffer_offset, piece } => {
                self.read(*request, *buffer_offset, piece);
            }
            DataCommand::Write { request, buffer_offset, piece } => {
                self.write(*request, *buffer_offset, piece);
            }
            DataCommand::WriteTorn { request, buffer_offset, piece, component, keep_bytes } => {
                self.write_torn(*request, *buffer_offset, piece, *component, *keep_bytes);
            }
            DataCommand::Discard { piece, .. } => self.row(piece).discard(),
            DataCommand::Resync { piece, target, slot } => self.row(piece).resync(*target, *slot),
            DataCommand::Reshape { from, to } => self.reshape(from, to),
            DataCommand::Zero { component, offset_bytes, length_bytes } => {
                let (offset, length) = (*offset_bytes, *length_bytes);
                self.with(*component, |held| {
                    held.discard(offset, length);
                    held.persist();
                });
            }
            DataCommand::Persist { component } => self.with(*component, Held::persist),
            DataCommand::PowerCut { component, seed } => {
                self.with(*component, |held| held.power_cut(*seed));
            }
            DataCommand::RollBack { piece, seed } => self.row(piece).roll_back(*seed),
            DataCommand::BitRot { component, offset_bytes, bit } => {
                self.with(*component, |held| held.flip(*offset_bytes, *bit));
            }
            DataCommand::TearNextWrite { component, keep_bytes } => {
                self.with(*component, |held| held.tear_next(*keep_bytes));
            }
        }
    }

    fn with(&mut self, component: ComponentId, act: impl FnOnce(&mut Held<M::Store>)) {
        if let Some(held) = self.components.get_mut(component) {
            act(held);
        }
    }

    fn row<'a>(&'a mut self, piece: &'a Piece) -> Row<'a, M::Store> {
        Row { components: &mut self.components, findings: &mut self.findings, piece, filled: None }
    }

    fn remove(&mut self, component: ComponentId) {
        if let Some(mut held) = self.components.take(component) {
            held.forget_marks();
            self.maker.remove(component, held.into_store());
        }
    }

    fn read(&mut self, request: RequestId, buffer_offset: u32, piece: &Piece) {
        let Some(buffer) = self.buffers.get_mut(&request) else { return };
        let target = &mut buffer.bytes[buffer_offset as usize..][..piece.length_bytes as usize];
        let mut row = Row {
            components: &mut self.components,
            findings: &mut self.findings,
            piece,
            filled: None,
        };
        if row.read_straight(target) {
            return;
        }
        let Blocks { bytes, good } = row.read();
        target.copy_from_slice(&bytes);
        if let Some(bad) = good.iter().position(|good| !good) {
            buffer.readable = false;
            let (component, offset_bytes) =
                place_of(piece, piece.start + (bad * BLOCK_BYTES) as u32);
            self.findings.push(Finding::Lost { component, offset_bytes });
        }
    }

    fn write(&mut self, request: RequestId, buffer_offset: u32, piece: &Piece) {
        let Some(buffer) = self.buffers.get(&request) else { return };
        let bytes = &buffer.bytes[buffer_offset as usize..][..piece.length_bytes as usize];
        let failures = self.components.failures;
        Row { components: &mut self.components, findings: &mut self.findings, piece, filled: None }
            .write(bytes);
        // The writer must not believe that it is stored, although other members may have it.
        if self.components.failures > failures {
            self.spoil(request);
        }
    }

    fn write_torn(
        &mut self,
        request: RequestId,
        buffer_offset: u32,
        piece: &Piece,
        component: ComponentId,
        keep_bytes: u32,
    ) {
        let Some(buffer) = self.buffers.get(&request) else { return };
        let bytes = &buffer.bytes[buffer_offset as usize..][..piece.length_bytes as usize];
        let offset = piece.row * u64::from(piece.unit_bytes) + u64::from(piece.start);
        if let Some(held) = self.components.get_mut(component) {
            held.write_torn(offset, bytes, keep_bytes as usize, piece.checksum);
        }
    }

    fn reshape(&mut self, from: &Piece, to: &Piece) {
        let Blocks { bytes, good } = self.row(from).read();
        // A new layout stays thin: blocks of zeros take no space there either.
        let mut row = self.row(to);
        if good.iter().all(|good| *good) && bytes.iter().all(|byte| *byte == 0) {
            row.discard();
        } else {
            row.write(&bytes);
            row.break_range(&good);
        }
        // As with copies for resync, what is copied is durable at once.
        for member in to.members() {
            self.with(member.component, Held::persist);
        }
    }
}

impl<M: StoreMaker> DataPlane<M>
where
    M::Store: BlockStore,
{
    /// Components that exist.
    pub fn components(&self) -> impl Iterator<Item = ComponentId> + '_ {
        self.components
            .held
            .iter()
            .enumerate()
            .filter(|(_, held)| held.is_some())
            .map(|(index, _)| ComponentId(index as u32))
    }
}

/// The component that should hold a byte of a row's data, and where in it. Of a mirror, any of them.
fn place_of(piece: &Piece, at: u32) -> (ComponentId, u64) {
    let (unit, within) = (at / piece.unit_bytes, at % piece.unit_bytes);
    let slot = match piece.kind {
        SetKind::Mirror { .. } => None,
        SetKind::Parity { .. } => Some(piece.kind.data_member(piece.row, unit as u8)),
    };
    let members = piece.members();
    let holder = members.iter().find(|member| Some(member.slot) == slot).or(members.first());
    let component = holder.map_or(ComponentId(u32::MAX), |member| member.component);
    (component, piece.row * u64::from(piece.unit_bytes) + u64::from(within))
}

#[cfg(test)]
mod tests {
    use super::{DataPlane, Delivered, place_of};
    use crate::data_plane::{BlockStore, MemoryStore, StoreError, StoreMaker};
    use std::cell::Cell;
    use std::rc::Rc;
    use underlay_model::RequestId;
    use underlay_model::cluster::{
        Checksum, ComponentId, Content, DataCommand, DeviceId, DurabilityPoint, GroupId, Piece,
        PieceMember, SetKind,
    };

    /// A medium that may be full: then it takes neither bytes nor checksums.
    struct Full {
        store: MemoryStore,
        is_full: Rc<Cell<bool>>,
    }

    struct Maker(Rc<Cell<bool>>);

    fn full() -> StoreError {
        let (component, cause) = (ComponentId(0), "No space left on device".to_string());
        StoreError { component, operation: "write", offset: 0, length: 0, cause }
    }

    impl BlockStore for Full {
        fn len_bytes(&self) -> u64 {
            self.store.len_bytes()
        }

        fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
            self.store.read(offset, buffer)
        }

        fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
            if self.is_full.get() { Err(full()) } else { self.store.write(offset, bytes) }
        }

        fn discard(&mut self, offset: u64, length: u64) -> Result<(), StoreError> {
            self.store.discard(offset, length)
        }

        fn read_sums(&mut self, first: u64, sums: &mut [u32]) -> Result<(), StoreError> {
            self.store.read_sums(first, sums)
        }

        fn write_sums(&mut self, first: u64, sums: &[u32]) -> Result<(), StoreError> {
            if self.is_full.get() { Err(full()) } else { self.store.write_sums(first, sums) }
        }
    }

    impl StoreMaker for Maker {
        type Store = Full;

        fn create(&mut self, _: ComponentId, _: DeviceId, length: u64) -> Result<Full, StoreError> {
            Ok(Full { store: MemoryStore::new(length), is_full: Rc::clone(&self.0) })
        }

        fn remove(&mut self, _: ComponentId, _: Full) {}
    }

    /// The writer gets an error, and old content or zeros are never read as if they had been written. That stays so after
    /// there is room again.
    #[test]
    fn what_a_full_medium_does_not_take_is_an_error_and_no_data() {
        for kind in [SetKind::Mirror { copies: 2 }, SetKind::Parity { data: 3, parity: 1 }] {
            let is_full = Rc::new(Cell::new(false));
            let mut plane = DataPlane::new(Maker(Rc::clone(&is_full)));
            let mut piece = Piece::new(kind, 64 << 10, 0, Checksum::On);
            for slot in 0..kind.members() {
                let component = ComponentId(u32::from(slot));
                let device = DeviceId { group: GroupId(0), member: slot + 1 };
                let durability = DurabilityPoint::OnWrite;
                let length_bytes = 1 << 20;
                plane.execute(&DataCommand::Create { component, length_bytes, device, durability });
                piece.push(PieceMember { component, slot, content: Content::Current });
            }
            let mut number = 0;
            let mut ask = |plane: &mut DataPlane<Maker>, at: u32, value: Option<u8>| {
                number += 1;
                let request = RequestId(number);
                let (buffer_offset, piece) = (0, piece.with_range(at, 8192));
                match value {
                    Some(value) => {
                        plane.stage_write(request, vec![value; 8192]);
                        plane.execute(&DataCommand::Write { request, buffer_offset, piece });
                    }
                    None => {
                        plane.stage_read(request, vec![9; 8192]);
                        plane.execute(&DataCommand::Read { request, buffer_offset, piece });
                    }
                }
                plane.finish(request).expect("it was staged")
            };
            let all = |value: u8| Delivered::Bytes(vec![value; 8192]);
            let is_bad = |delivered: &Delivered| matches!(delivered, Delivered::Unreadable(_));
            assert_eq!(ask(&mut plane, 0, Some(1)), all(1));
            assert_eq!(plane.take_failure(), None);
            is_full.set(true);
            assert!(is_bad(&ask(&mut plane, 0, Some(2))), "{kind:?}");
            assert!(is_bad(&ask(&mut plane, 16384, Some(2))), "{kind:?}");
            let cause = plane.take_failure().expect("it is told").cause;
            assert_eq!(cause, "No space left on device");
            assert!(is_bad(&ask(&mut plane, 0, None)) && is_bad(&ask(&mut plane, 16384, None)));
            is_full.set(false);
            // A write that goes well has what could not be stored before stored now.
            assert_eq!(ask(&mut plane, 32768, Some(3)), all(3));
            assert_eq!(ask(&mut plane, 32768, None), all(3));
            assert!(is_bad(&ask(&mut plane, 0, None)) && is_bad(&ask(&mut plane, 16384, None)));
            assert_eq!(ask(&mut plane, 0, Some(4)), all(4), "{kind:?}");
            assert_eq!(ask(&mut plane, 0, None), all(4));
            assert_eq!(ask(&mut plane, 16384, Some(5)), all(5));
            assert_eq!(ask(&mut plane, 16384, None), all(5));
        }
    }

    #[test]
    fn a_lost_block_is_named_where_it_lies() {
        let of = |kind: SetKind, row: u64| {
            let mut piece = Piece::new(kind, 64 << 10, row, Checksum::On);
            for slot in 0..kind.members() {
                let component = ComponentId(20 + u32::from(slot));
                piece.push(PieceMember { component, slot, content: Content::Current });
            }
            piece
        };
        let parity = SetKind::Parity { data: 3, parity: 1 };
        for row in 0..8 {
            for unit in 0..3u8 {
                let found = place_of(&of(parity, row), u32::from(unit) * (64 << 10) + 8192);
                let slot = parity.data_member(row, unit);
                assert_eq!(found, (ComponentId(20 + u32::from(slot)), row * (64 << 10) + 8192));
            }
        }
        let mirror = of(SetKind::Mirror { copies: 2 }, 3);
        assert_eq!(place_of(&mirror, 4096), (ComponentId(20), 3 * (64 << 10) + 4096));
    }
}

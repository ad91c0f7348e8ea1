//! Deduplication and compression of the real bytes, in a thread of its own.
//!
//! ```text
//! serving thread:  destaged, and swept up  --first block, number-->  counting thread: reads the bytes, fingerprints,
//!                  space, what recent blocks were like  <----------  compresses, counts; keeps prints beside components
//! ```
//!
//! Fingerprinting 64 KiB takes as long as serving tens of requests, so it is not done where requests are served. Bytes are
//! read a little later than they were destaged. That is correct: any change in between marks the block again, and the
//! count is exact as soon as no mark is left (`crate::reduction`). Data that stays in a write buffer is counted after a
//! while without writes.
//!
//! **Restart.** The counts are built again from the prints beside the components, 16 bytes per block instead of its 4 KiB;
//! blocks whose checksum differs from that of their fingerprint are read and counted again. So a killed server counts the
//! same as one that shut down cleanly, and there is no second copy of the counts that could be stale. Blocks without
//! checksums are read.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::data_plane::{DataPlane, StoreMaker};
use crate::reduction::{Observed, ReducedGroup, Space, Sweep};
use underlay_core::Nanos;
use underlay_model::cluster::{Cluster, ComponentId, DataCommand, GroupId, Leaving};
use underlay_model::performance;

use super::file_store::{FileStore, FileStores, Place, component_path};
use super::fingerprint_file::{FingerprintFile, prints_path};
use crate::error::DatastoreError;

/// How often blocks are handed over.
const EVERY: Nanos = Nanos::from_millis(20);
/// Blocks handed over and not counted, beyond which the others keep their marks for later: 256 MiB.
const WAITING_BLOCKS_MAX: u64 = 65_536;

/// When nothing was written for this long, what is in a write buffer is counted too: a small volume may never fill the buffer
/// so far that it is destaged.
const QUIET: Nanos = Nanos::from_secs(5);
/// How often that goes on.
const EVERY_WHEN_QUIET: Nanos = Nanos::from_millis(100);

/// Messages to the counting thread.
enum Job {
    /// These exist since an earlier life, all of them.
    Recall(Vec<Place>),
    Created(Place),
    Count(Vec<Leaving>),
    Removed(ComponentId),
    /// A group that reduces, new and empty.
    Group(GroupId),
}

/// What the counting thread tells.
#[derive(Debug, Default)]
struct Shared {
    groups: Mutex<HashMap<GroupId, (Space, Option<Observed>)>>,
    waiting_blocks: AtomicU64,
    /// Components that are still to be recalled.
    recalling: AtomicU64,
    /// Nothing more is to be counted: the next start will.
    ending: AtomicBool,
}

/// The serving thread's end.
#[derive(Debug)]
pub(crate) struct Reduction {
    /// None once the thread is to end.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    groups: Vec<GroupId>,
    sweep: Sweep,
    leaving: Vec<Leaving>,
    next: Nanos,
    /// When bytes were last changed.
    changed_at: Nanos,
    /// When what is in write buffers is to be counted, if there is any.
    counts_buffered_at: Option<Nanos>,
}

impl Reduction {
    /// Starts counting, if a group of the cluster reduces. `places` are the components that exist.
    pub(crate) fn start(
        cluster: &Cluster,
        data: &mut DataPlane<impl StoreMaker>,
        directory: PathBuf,
        places: &[Place],
    ) -> Result<Option<Reduction>, DatastoreError> {
        let groups = cluster.reducing_groups();
        if groups.is_empty() {
            return Ok(None);
        }
        let places = places.iter().filter(|place| groups.contains(&place.device.group));
        let places: Vec<Place> = places.copied().collect();
        places.iter().for_each(|place| data.track(place.component));
        let shared = Arc::new(Shared::default());
        shared.recalling.store(places.len() as u64, Ordering::Release);
        let (jobs, received) = channel();
        let mut counting = Counting {
            directory,
            shared: Arc::clone(&shared),
            components: HashMap::new(),
            groups: groups.iter().map(|group| (*group, ReducedGroup::new())).collect(),
        };
        let thread = std::thread::Builder::new()
            .name("reduction".to_string())
            .spawn(move || counting.run(&received))
            .map_err(DatastoreError::system("start a thread"))?;
        let reduction = Reduction {
            jobs: Some(jobs),
            thread: Some(thread),
            shared,
            groups,
            sweep: Sweep::default(),
            leaving: Vec::new(),
            next: Nanos::ZERO,
            changed_at: Nanos::ZERO,
            counts_buffered_at: Some(QUIET),
        };
        reduction.send(Job::Recall(places));
        Ok(Some(reduction))
    }

    fn send(&self, job: Job) {
        // A thread that is gone counts nothing more; it has said why.
        let _nobody_counts = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// From now on a group counts too that has just been added to the cluster.
    pub(crate) fn add_group(&mut self, group: GroupId) {
        self.groups.push(group);
        self.send(Job::Group(group));
    }

    /// A data command has been carried out.
    pub(crate) fn follow(
        &mut self,
        now: Nanos,
        command: &DataCommand,
        data: &mut DataPlane<impl StoreMaker>,
    ) {
        match command {
            DataCommand::Write { .. }
            | DataCommand::WriteTorn { .. }
            | DataCommand::Discard { .. }
            | DataCommand::RollBack { .. }
            | DataCommand::Resync { .. }
            | DataCommand::Reshape { .. } => {
                self.changed_at = now;
                self.counts_buffered_at = Some(now + QUIET);
            }
            DataCommand::Create { component, length_bytes, device, .. }
                if self.groups.contains(&device.group) =>
            {
                data.track(*component);
                let (component, device, length) = (*component, *device, *length_bytes);
                self.send(Job::Created(Place { component, device, length }));
            }
            DataCommand::Remove { component } => self.send(Job::Removed(*component)),
            _ => {}
        }
    }

    /// When [`Reduction::look`] is to be called, whatever else happens.
    pub(crate) fn wakeup(&self) -> Option<Nanos> {
        self.counts_buffered_at
    }

    /// Hands over what is to be counted, and tells the groups what became of what was; now and then.
    pub(crate) fn look(
        &mut self,
        now: Nanos,
        cluster: &mut Cluster,
        data: &mut DataPlane<impl StoreMaker>,
    ) {
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        let is_quiet = self.counts_buffered_at.is_some() && now >= self.changed_at + QUIET;
        if is_quiet {
            self.counts_buffered_at = Some(now + EVERY_WHEN_QUIET);
        }
        let waiting = self.shared.waiting_blocks.load(Ordering::Acquire);
        if waiting > WAITING_BLOCKS_MAX {
            // The marks stay; the sweep finds them later.
            for group in &self.groups {
                drop(cluster.take_destaged(*group));
            }
            return;
        }
        if is_quiet {
            self.sweep.collect_buffered_too(cluster, data, &mut self.leaving);
            if data.changed_blocks() == 0 {
                self.counts_buffered_at = None;
            }
        } else {
            self.sweep.collect(cluster, data, &mut self.leaving);
        }
        if !self.leaving.is_empty() {
            let blocks: u64 = self.leaving.iter().map(|leaving| leaving.blocks).sum();
            self.shared.waiting_blocks.fetch_add(blocks, Ordering::AcqRel);
            let leaving = std::mem::take(&mut self.leaving);
            self.send(Job::Count(leaving));
        }
        let groups = self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner);
        for (group, (_, observed)) in &*groups {
            if let Some(observed) = observed {
                cluster.set_reduction_observed(*group, *observed);
            }
        }
    }

    /// What is stored, per group, and how many blocks are not counted as they are now.
    pub(crate) fn report(&self, data: &DataPlane<impl StoreMaker>) -> performance::Reduced {
        // What is still to be done first: the space then has at least what these say is counted.
        let recalling = self.shared.recalling.load(Ordering::Acquire);
        let uncounted_blocks =
            data.changed_blocks() + self.shared.waiting_blocks.load(Ordering::Acquire);
        let groups = self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let space = |group: &GroupId| groups.get(group).map_or(Space::default(), |it| it.0);
        performance::Reduced {
            groups: self.groups.iter().map(|group| (*group, space(group))).collect(),
            uncounted_blocks,
            recalling,
        }
    }
}

impl Drop for Reduction {
    /// Ends the thread. What is not counted yet is counted by the next start.
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Release);
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that counts reduced blocks panicked");
        }
    }
}

/// One component, as the counting thread has it.
struct Counted {
    place: Place,
    /// None if its bytes are gone, or cannot be opened.
    content: Option<FileStore>,
    prints: FingerprintFile,
}

/// The counting thread.
struct Counting {
    directory: PathBuf,
    shared: Arc<Shared>,
    components: HashMap<ComponentId, Counted>,
    groups: HashMap<GroupId, ReducedGroup>,
}

impl Counting {
    fn run(&mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Recall(places) => {
                    self.remove_unknown_prints(&places);
                    for place in places {
                        if self.is_ending() {
                            return;
                        }
                        self.report(&place, "count again", |counting| counting.recall(place));
                        // Before it is said that this is done.
                        self.publish(place.device.group);
                        self.shared.recalling.fetch_sub(1, Ordering::AcqRel);
                    }
                }
                Job::Created(place) => {
                    self.report(&place, "begin to count", |counting| counting.create(place));
                }
                Job::Count(leaving) => {
                    for leaving in &leaving {
                        if !self.is_ending() {
                            self.count(leaving);
                        }
                    }
                    let groups: Vec<GroupId> = self.groups.keys().copied().collect();
                    groups.into_iter().for_each(|group| self.publish(group));
                    let blocks: u64 = leaving.iter().map(|leaving| leaving.blocks).sum();
                    self.shared.waiting_blocks.fetch_sub(blocks, Ordering::AcqRel);
                }
                Job::Removed(component) => self.remove(component),
                Job::Group(group) => drop(self.groups.insert(group, ReducedGroup::new())),
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.shared.ending.load(Ordering::Acquire)
    }

    fn report(
        &mut self,
        place: &Place,
        what: &str,
        act: impl FnOnce(&mut Counting) -> io::Result<()>,
    ) {
        if let Err(error) = act(self)
            && error.kind() != io::ErrorKind::Interrupted
        {
            let component = place.component;
            tracing::error!("{component}: could not {what} what it holds: {error}");
        }
    }

    fn publish(&self, group: GroupId) {
        let Some(counted) = self.groups.get(&group) else { return };
        let mut groups = self.shared.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.insert(group, (counted.space(), counted.observed()));
    }

    fn component_path(&self, place: &Place) -> PathBuf {
        component_path(&self.directory, place.device, place.component)
    }

    fn open(&mut self, place: Place) -> io::Result<&mut Counted> {
        let path = prints_path(&self.component_path(&place));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let prints = FingerprintFile::open(&path, place.length)?;
        let stores = FileStores::new(&self.directory);
        let content = stores.look(place.component, place.device, place.length)?;
        let counted = Counted { place, content, prints };
        Ok(self.components.entry(place.component).insert_entry(counted).into_mut())
    }

    fn create(&mut self, place: Place) -> io::Result<()> {
        // Fingerprints that a component of that name had before a crash of this program are stale.
        match fs::remove_file(prints_path(&self.component_path(&place))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.open(place).map(drop)
    }

    fn recall(&mut self, place: Place) -> io::Result<()> {
        self.open(place)?;
        let Some(Counted { content: Some(content), prints, .. }) =
            self.components.get_mut(&place.component)
        else {
            return Ok(());
        };
        let Some(group) = self.groups.get_mut(&place.device.group) else { return Ok(()) };
        let shared = &self.shared;
        group.recall(content, prints, |content: &FileStore, from| {
            if shared.ending.load(Ordering::Acquire) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            content.next_content(from)
        })
    }

    fn count(&mut self, leaving: &Leaving) {
        let Some(counted) = self.components.get_mut(&leaving.component) else { return };
        let (place, prints) = (counted.place, &mut counted.prints);
        let Some(content) = &mut counted.content else { return };
        let Some(group) = self.groups.get_mut(&leaving.group) else { return };
        if let Err(error) = group.update(content, prints, leaving.first, leaving.blocks) {
            let component = place.component;
            tracing::error!("{component}: could not count {leaving:?}: {error}");
        }
    }

    fn remove(&mut self, component: ComponentId) {
        let Some(Counted { place, mut prints, .. }) = self.components.remove(&component) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(&place.device.group)
            && let Err(error) = group.forget(&mut prints, place.length)
        {
            tracing::error!("{component}: could not forget what it held: {error}");
        }
        self.publish(place.device.group);
        if let Err(error) = fs::remove_file(prints_path(&self.component_path(&place))) {
            tracing::warn!("{component}: could not remove its fingerprints: {error}");
        }
    }

    /// Removes prints of components that are not there any more: a crash came between.
    fn remove_unknown_prints(&self, places: &[Place]) {
        let known: Vec<PathBuf> =
            places.iter().map(|place| prints_path(&self.component_path(place))).collect();
        let folders = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let files = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten();
        for file in files.flatten().map(|file| file.path()) {
            let is_prints = file.extension().is_some_and(|extension| extension == "prints");
            if is_prints && !known.contains(&file) {
                // It is not used any more; removal is tried again at the next start.
                let _tried_again_at_the_next_start = fs::remove_file(&file);
            }
        }
    }
}

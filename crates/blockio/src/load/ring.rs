//! A ring for the load generator: as cheap per request as the kernel allows.
//!
//! The file is registered, and so are the buffers where the memory limit lets us. Completions are delivered when
//! we ask for them and not by interrupting us (`DEFER_TASKRUN`, Linux 6.1), if the kernel can. Errors of single
//! requests are handed to the caller: a load generator counts them. On drop it waits for what is in flight,
//! because the kernel may write into the buffers until then.

use crate::buffer::Buffers;
use crate::error::BlockIoError;
use crate::target::Target;
use io_uring::types::{self, Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rand_pcg::Pcg64;
use std::time::Duration;

/// Marks the completion of the timer.
const TICK: u64 = u64::MAX;
/// The kernel refuses to register more at once.
const REGISTERED_MAX: usize = 1 << 30;

/// Until when to wait.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// Only hand over what was pushed, and take what is there.
    Not,
    /// Until something completes, the timer included.
    Completion,
    /// The same, but no longer than this.
    AtMost(Duration),
}

impl Wait {
    fn at_most(self) -> Duration {
        match self {
            Wait::AtMost(time) => time,
            Wait::Not | Wait::Completion => Duration::ZERO,
        }
    }
}

/// Requests to one target.
pub(super) struct LoadRing<'t> {
    target: &'t Target,
    ring: IoUring,
    buffers: Buffers,
    registered: bool,
    in_flight: u32,
    timer: Box<Timespec>,
    timer_armed: bool,
}

impl<'t> LoadRing<'t> {
    /// A ring with places for `slots` requests of up to `bytes_max` bytes. To be used by the thread that makes it.
    pub(super) fn new(
        target: &'t Target,
        slots: u32,
        bytes_max: u32,
        random: &mut Pcg64,
    ) -> Result<LoadRing<'t>, BlockIoError> {
        // Room for the timer too.
        let entries = (slots + 1).next_power_of_two().max(4);
        let quick = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(entries);
        let ring = match quick {
            Ok(ring) => ring,
            Err(_) => IoUring::new(entries).map_err(|source| BlockIoError::NoRing { source })?,
        };
        let mut buffers = Buffers::new(slots, bytes_max, random)?;
        ring.submitter()
            .register_files(&[target.raw_fd()])
            .map_err(|source| BlockIoError::NoRing { source })?;
        let (address, length) = buffers.whole();
        let memory = libc::iovec { iov_base: address.cast(), iov_len: length };
        // SAFETY: the memory outlives the ring: both belong to the same value, whose drop waits for all requests.
        let registered = length <= REGISTERED_MAX
            && unsafe { ring.submitter().register_buffers(&[memory]) }.is_ok();
        Ok(LoadRing {
            target,
            ring,
            buffers,
            registered,
            in_flight: 0,
            timer: Box::new(Timespec::new()),
            timer_armed: false,
        })
    }

    /// The memory of a place. Nothing may be in flight there.
    pub(super) fn buffer(&mut self, slot: u32, length: u32) -> &mut [u8] {
        self.buffers.bytes(slot, length)
    }

    /// Requests that the kernel has not finished.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Reads into the place's memory.
    pub(super) fn read(&mut self, slot: u32, offset: u64, length: u32) {
        let address = self.buffers.bytes(slot, length).as_mut_ptr();
        let entry = match self.registered {
            true => opcode::ReadFixed::new(Fixed(0), address, length, 0).offset(offset).build(),
            false => opcode::Read::new(Fixed(0), address, length).offset(offset).build(),
        };
        self.push(slot, &entry);
    }

    /// Writes the place's memory, through volatile caches if `through`.
    pub(super) fn write(&mut self, slot: u32, offset: u64, length: u32, through: bool) {
        debug_assert!(self.target.is_writable(), "checked before the load began");
        let address = self.buffers.bytes(slot, length).as_mut_ptr();
        let flags = if through { libc::RWF_DSYNC } else { 0 };
        let entry = match self.registered {
            true => opcode::WriteFixed::new(Fixed(0), address, length, 0)
                .offset(offset)
                .rw_flags(flags)
                .build(),
            false => {
                opcode::Write::new(Fixed(0), address, length).offset(offset).rw_flags(flags).build()
            }
        };
        self.push(slot, &entry);
    }

    /// Makes durable what was written.
    pub(super) fn flush(&mut self, slot: u32) {
        let entry = opcode::Fsync::new(Fixed(0)).flags(FsyncFlags::DATASYNC).build();
        self.push(slot, &entry);
    }

    /// Makes a wait end after `delay` at the latest, once. One timer at a time.
    pub(super) fn arm_timer(&mut self, delay: Duration) {
        if self.timer_armed {
            return;
        }
        *self.timer = timespec(delay);
        let entry = opcode::Timeout::new(&raw const *self.timer).build().user_data(TICK);
        // SAFETY: the time is on the heap and is not written to while the timer is armed; it outlives the ring.
        if unsafe { self.ring.submission().push(&entry) }.is_ok() {
            self.timer_armed = true;
        }
    }

    fn push(&mut self, slot: u32, entry: &squeue::Entry) {
        let entry = entry.clone().user_data(u64::from(slot));
        // SAFETY: the buffer belongs to this place alone, is long enough, and outlives the request, as `drop`
        // waits for everything in flight; the file is registered and its target borrowed by the ring.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the ring has a place for every slot and the timer");
        self.in_flight += 1;
    }

    /// Hands over what was pushed, and waits. A signal ends the wait.
    pub(super) fn submit(&mut self, wait: Wait) -> Result<(), BlockIoError> {
        let result = match wait {
            Wait::Completion => self.ring.submit_and_wait(1),
            // Without a wait the kernel would not deliver what has completed.
            Wait::Not | Wait::AtMost(_) => {
                let time = timespec(wait.at_most());
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        self.judge(result)
    }

    fn judge(&self, result: std::io::Result<usize>) -> Result<(), BlockIoError> {
        match result {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(BlockIoError::Wait {
                    path: self.target.path().to_path_buf(),
                    source: error,
                }),
            },
        }
    }

    /// Requests that were pushed and not handed over.
    pub(super) fn unsubmitted(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Hands over what was pushed, without a wait. What the kernel has no room for now it is given later.
    pub(super) fn hand_over(&mut self) -> Result<(), BlockIoError> {
        self.judge(self.ring.submit())
    }

    /// Takes what completed: place and result (bytes, or a negative error number).
    pub(super) fn take(&mut self, completed: &mut Vec<(u32, i32)>) {
        for entry in self.ring.completion() {
            if entry.user_data() == TICK {
                self.timer_armed = false;
            } else {
                self.in_flight -= 1;
                // Slots have 32 bits and were widened by `push`.
                completed.push((entry.user_data() as u32, entry.result()));
            }
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    types::Timespec::new().sec(time.as_secs()).nsec(time.subsec_nanos())
}

impl Drop for LoadRing<'_> {
    fn drop(&mut self) {
        let mut completed = Vec::new();
        while self.in_flight > 0 {
            if self.submit(Wait::Completion).is_err() {
                // Without the kernel's word the buffers must stay: better to lose memory than to let it be
                // written to after it was freed.
                std::process::abort();
            }
            self.take(&mut completed);
        }
    }
}

//! What a volume may hold: per sector the writes whose content a read may return.
//!
//! A write is *possible* from its submission on. When it succeeds, everything that had ended before it was submitted is
//! superseded. A failed write stays possible until something supersedes it. Where acknowledged writes are volatile,
//! what was superseded since the last flush comes back into question when the power of more hosts than the policy
//! promises goes.
//!
//! Rot together with more failures than promised can destroy blocks for good: a read of them may fail until they are
//! written again, however healthy the cluster is by then. Wrong data is never allowed.

use underlay_core::Nanos;

/// Unit of the check; a power cut tears between sectors.
pub const SECTOR: usize = 512;

/// One write (or discard) of a sector.
#[derive(Clone, Copy, Debug)]
struct Entry {
    write: u64,
    /// What it stored; 0 = zeros.
    content: u64,
    submitted: Nanos,
    ended: Option<Nanos>,
    /// Volatile writes were lost since, maybe this one: a later flush says nothing about it.
    maybe_lost: bool,
}

#[derive(Clone, Debug)]
struct Sector {
    /// What may be read now.
    possible: Vec<Entry>,
    /// What may be read after volatile writes were lost.
    durable: Vec<Entry>,
    /// Since when it may be unreadable for good.
    destroyed: Option<Nanos>,
}

/// The reference of one volume.
#[derive(Clone, Debug)]
pub struct Reference {
    sectors: Vec<Sector>,
    /// How often volatile writes may have been lost.
    losses: u32,
}

/// What a read may return, as of its submission.
#[derive(Clone, Debug)]
pub struct Expectation {
    possible: Vec<Vec<u64>>,
    losses: u32,
    /// Whether a write was possible meanwhile: then the result says nothing about later reads.
    disturbed: Vec<bool>,
}

/// Takes out what had ended before `by` began. Writes are numbered as they begin: a later one had not, even if it took no time
/// and ended at the same moment.
fn supersede(entries: &mut Vec<Entry>, by: Entry) {
    entries.retain(|entry| {
        entry.write >= by.write || entry.ended.is_none_or(|ended| ended > by.submitted)
    });
}

/// The bytes of a sector written by `content`.
pub fn sector_bytes(content: u64, sector: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if content == 0 {
        return bytes;
    }
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        let value = match index {
            0 => content,
            _ => (content ^ (sector << 20)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ index as u64,
        };
        word.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// Which content a sector holds; `Err` when it is no content at all.
pub fn content_of(bytes: &[u8], sector: u64) -> Result<u64, ()> {
    let content = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    if bytes == sector_bytes(content, sector) { Ok(content) } else { Err(()) }
}

impl Reference {
    /// A volume of zeros.
    pub fn new(bytes: u64) -> Reference {
        let zero = Entry {
            write: 0,
            content: 0,
            submitted: Nanos::ZERO,
            ended: Some(Nanos::ZERO),
            maybe_lost: false,
        };
        let sector = Sector { possible: vec![zero], durable: vec![zero], destroyed: None };
        Reference { sectors: vec![sector; bytes as usize / SECTOR], losses: 0 }
    }

    /// A write begins.
    pub fn submitted(
        &mut self,
        write: u64,
        content: u64,
        at: Nanos,
        sectors: std::ops::Range<usize>,
    ) {
        for sector in &mut self.sectors[sectors] {
            let entry = Entry { write, content, submitted: at, ended: None, maybe_lost: false };
            sector.possible.push(entry);
            sector.durable.push(entry);
        }
    }

    /// A write ended well.
    pub fn succeeded(
        &mut self,
        write: u64,
        at: Nanos,
        sectors: std::ops::Range<usize>,
        durable: bool,
    ) {
        for sector in &mut self.sectors[sectors] {
            let Some(by) = end(&mut sector.possible, write, at) else { continue };
            supersede(&mut sector.possible, by);
            let by = end(&mut sector.durable, write, at);
            if let (true, Some(by)) = (durable, by) {
                supersede(&mut sector.durable, by);
            }
        }
    }

    /// A write ended with an error: it may have happened, in part or not at all.
    pub fn failed(&mut self, write: u64, at: Nanos, sectors: std::ops::Range<usize>) {
        for sector in &mut self.sectors[sectors] {
            end(&mut sector.possible, write, at);
            end(&mut sector.durable, write, at);
        }
    }

    /// A flush that was submitted at `submitted` ended well: what had succeeded before it is durable. `ok` tells
    /// whether a write succeeded.
    pub fn flushed(&mut self, submitted: Nanos, ok: impl Fn(u64) -> bool) {
        for sector in &mut self.sectors {
            let durable: Vec<Entry> = sector
                .durable
                .iter()
                .copied()
                .filter(|entry| !entry.maybe_lost)
                .filter(|entry| ok(entry.write) && entry.ended.is_some_and(|at| at <= submitted))
                .collect();
            for by in durable {
                supersede(&mut sector.durable, by);
            }
        }
    }

    /// Volatile writes may be lost.
    pub fn lost_volatile(&mut self) {
        self.losses += 1;
        for sector in &mut self.sectors {
            for entry in sector.durable.iter_mut().chain(&mut sector.possible) {
                entry.maybe_lost = true;
            }
            for entry in &sector.durable {
                if !sector.possible.iter().any(|possible| possible.write == entry.write) {
                    sector.possible.push(*entry);
                }
            }
        }
    }

    /// Any sector may be unreadable from now on.
    pub fn destroyed(&mut self, at: Nanos) {
        for sector in &mut self.sectors {
            sector.destroyed = Some(at);
        }
    }

    /// Whether one of the sectors may be unreadable.
    pub fn may_be_destroyed(&self, sectors: std::ops::Range<usize>) -> bool {
        self.sectors[sectors].iter().any(|sector| sector.destroyed.is_some())
    }

    /// Somebody who asked at `submitted` has read or written the sectors: they are not unreadable.
    pub fn intact(&mut self, submitted: Nanos, sectors: std::ops::Range<usize>) {
        for sector in &mut self.sectors[sectors] {
            sector.destroyed = sector.destroyed.filter(|at| *at >= submitted);
        }
    }

    /// What a read that begins now may return.
    pub fn expect(&self, sectors: std::ops::Range<usize>) -> Expectation {
        let sectors = &self.sectors[sectors];
        Expectation {
            losses: self.losses,
            possible: sectors
                .iter()
                .map(|sector| sector.possible.iter().map(|entry| entry.content).collect())
                .collect(),
            disturbed: sectors
                .iter()
                .map(|sector| sector.possible.iter().any(|entry| entry.ended.is_none()))
                .collect(),
        }
    }

    /// Checks what a read returned, and learns from it: what was read once must be read again.
    pub fn check(
        &mut self,
        expectation: &Expectation,
        first: usize,
        bytes: &[u8],
        durable: bool,
    ) -> Result<(), String> {
        for (index, held) in bytes.chunks_exact(SECTOR).enumerate() {
            let number = first + index;
            let sector = &mut self.sectors[number];
            let now = sector.possible.iter().map(|entry| entry.content);
            let possible: Vec<u64> =
                expectation.possible[index].iter().copied().chain(now).collect();
            let Ok(content) = content_of(held, number as u64) else {
                return Err(format!("sector {number} holds nothing that was ever written"));
            };
            if !possible.contains(&content) {
                return Err(format!("sector {number} holds {content}, possible are {possible:?}"));
            }
            // A read that was in flight at a power cut may have seen what was lost then.
            let quiet = !expectation.disturbed[index]
                && expectation.losses == self.losses
                && sector.possible.iter().all(|entry| entry.ended.is_some());
            if quiet && sector.possible.iter().any(|entry| entry.content == content) {
                sector.possible.retain(|entry| entry.content == content);
                if durable {
                    sector.durable.retain(|entry| entry.content == content);
                }
            }
        }
        Ok(())
    }
}

impl Expectation {
    /// Volatile writes may have been lost while the read is in flight: what they had replaced may be read, also when it is
    /// replaced again before the read ends.
    pub fn lost_volatile(&mut self, reference: &Reference, sectors: std::ops::Range<usize>) {
        for (possible, sector) in self.possible.iter_mut().zip(&reference.sectors[sectors]) {
            possible.extend(sector.possible.iter().map(|entry| entry.content));
        }
    }

    /// A write began while the read was in flight.
    pub fn add(&mut self, content: u64, first: usize, sectors: &std::ops::Range<usize>) {
        for (index, possible) in self.possible.iter_mut().enumerate() {
            if sectors.contains(&(first + index)) {
                possible.push(content);
                self.disturbed[index] = true;
            }
        }
    }
}

fn end(entries: &mut [Entry], write: u64, at: Nanos) -> Option<Entry> {
    let entry = entries.iter_mut().find(|entry| entry.write == write)?;
    entry.ended = Some(at);
    Some(*entry)
}

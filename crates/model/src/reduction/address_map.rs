//! From an address of a capacity device to what is stored for it: four bytes per block, in pieces that exist
//! only where something is stored.

const PIECE_BLOCKS: usize = 1024;
const NOTHING: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct AddressMap {
    pieces: Vec<Option<Box<[u32; PIECE_BLOCKS]>>>,
}

impl AddressMap {
    /// Sets what is stored for a block; returns what was.
    pub(super) fn set(&mut self, block: u64, entry: u32) -> Option<u32> {
        let piece = (block / PIECE_BLOCKS as u64) as usize;
        if piece >= self.pieces.len() {
            self.pieces.resize_with(piece + 1, || None);
        }
        let piece = self.pieces[piece].get_or_insert_with(|| Box::new([NOTHING; PIECE_BLOCKS]));
        let old = std::mem::replace(&mut piece[(block % PIECE_BLOCKS as u64) as usize], entry);
        (old != NOTHING).then_some(old)
    }

    /// Forgets what is stored for a block; returns what was.
    pub(super) fn clear(&mut self, block: u64) -> Option<u32> {
        let piece = self.pieces.get_mut((block / PIECE_BLOCKS as u64) as usize)?.as_mut()?;
        let old = std::mem::replace(&mut piece[(block % PIECE_BLOCKS as u64) as usize], NOTHING);
        (old != NOTHING).then_some(old)
    }

    /// Forgets everything, handing out what was stored.
    pub(super) fn drain(&mut self) -> Vec<u32> {
        let pieces = std::mem::take(&mut self.pieces);
        let entries = pieces.iter().flatten().flat_map(|piece| piece.iter().copied());
        entries.filter(|entry| *entry != NOTHING).collect()
    }
}

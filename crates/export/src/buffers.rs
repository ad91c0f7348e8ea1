//! Buffers for data that waits for its deadline, reused so that the hot path does not allocate.

const SMALLEST_BYTES: usize = 4096;
/// Powers of two from 4 KiB to 1 MiB.
const CLASSES: usize = 9;
/// Buffers kept per class; what is more is freed. 1,024 small ones are in flight at most; of the larger ones only 4 MiB per
/// class are kept, for moving their bytes costs more than allocating them.
const KEPT: [usize; CLASSES] = [1024, 512, 256, 128, 64, 32, 16, 8, 4];

/// A pool of buffers.
#[derive(Debug)]
pub struct BufferPool {
    classes: [Vec<Box<[u8]>>; CLASSES],
}

impl BufferPool {
    /// A pool with `small` buffers of 4 KiB ready and touched.
    pub(crate) fn new(small: usize) -> BufferPool {
        let mut classes: [Vec<Box<[u8]>>; CLASSES] = Default::default();
        for (class, kept) in classes.iter_mut().zip(KEPT) {
            class.reserve(kept);
        }
        // Written, not just allocated: a page touched for the first time costs microseconds.
        classes[0].extend((0..small).map(|_| vec![1u8; SMALLEST_BYTES].into_boxed_slice()));
        BufferPool { classes }
    }

    /// A buffer of at least `bytes` with arbitrary contents.
    pub fn take(&mut self, bytes: usize) -> Vec<u8> {
        let class = class_of(bytes);
        let pooled = self.classes.get_mut(class).and_then(Vec::pop);
        pooled.map_or_else(|| vec![0; SMALLEST_BYTES << class], <[u8]>::into_vec)
    }

    /// Gives a buffer back, as long as it was. One without memory is none.
    pub fn give(&mut self, buffer: Vec<u8>) {
        if buffer.is_empty() {
            return;
        }
        // Its length is its capacity: it came from here.
        let buffer = buffer.into_boxed_slice();
        let class = class_of(buffer.len());
        // A shorter one would be handed out to a request that needs the whole length of its class.
        debug_assert_eq!(buffer.len(), SMALLEST_BYTES << class, "not a buffer of the pool");
        if let Some(pool) = self.classes.get_mut(class)
            && pool.len() < KEPT[class]
        {
            pool.push(buffer);
        }
    }
}

fn class_of(bytes: usize) -> usize {
    let size = bytes.max(SMALLEST_BYTES).next_power_of_two();
    (size / SMALLEST_BYTES).trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::BufferPool;

    #[test]
    fn buffers_are_large_enough_and_reused() {
        let mut pool = BufferPool::new(1);
        for bytes in [1, 4096, 4097, 65_536, 1 << 20, (1 << 20) + 1] {
            let buffer = pool.take(bytes);
            assert!(buffer.len() >= bytes);
            let address = buffer.as_ptr();
            pool.give(buffer);
            let again = pool.take(bytes);
            // Beyond the largest class nothing is kept.
            assert!(again.as_ptr() == address || bytes > 1 << 20);
        }
    }
}

//! A pool of values with small keys that are never reused for a later value.
//!
//! It holds requests in flight: nothing is allocated in the steady state, and a late completion of an abandoned request
//! finds no value.

/// Names a value: its place, and how often the place was used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// As one number.
    pub(super) fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// From [`Key::to_u64`].
    pub(super) fn from_u64(number: u64) -> Key {
        Key { index: number as u32, generation: (number >> 32) as u32 }
    }
}

#[derive(Clone, Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

/// The pool.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// An empty pool.
    pub(super) fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    /// Stores a value.
    #[inline]
    pub(super) fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| self.push());
        // In one place, so that the value is written where it stays and not copied there.
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.value.is_none(), "a place holds one value");
        entry.value = Some(value);
        Key { index, generation: entry.generation }
    }

    #[cold]
    fn push(&mut self) -> u32 {
        self.entries.push(Entry { generation: 0, value: None });
        self.entries.len() as u32 - 1
    }

    /// The value, if it is still there.
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation == key.generation { entry.value.as_ref() } else { None }
    }

    /// The value, if it is still there.
    #[inline]
    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation == key.generation { entry.value.as_mut() } else { None }
    }

    /// Takes the value out, if it is still there.
    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    /// Drops the value, if it is still there.
    #[inline]
    pub(super) fn discard(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(key.index as usize) else { return };
        if entry.generation == key.generation && entry.value.is_some() {
            entry.value = None;
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(key.index);
        }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        debug_assert!(self.free.len() <= self.entries.len(), "a place is free once");
        self.entries.len() - self.free.len()
    }

    /// Calls `change` for each value.
    pub(super) fn for_each_mut(&mut self, change: impl FnMut(&mut T)) {
        self.entries.iter_mut().filter_map(|entry| entry.value.as_mut()).for_each(change);
    }

    /// All values with their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let key = Key { index: index as u32, generation: entry.generation };
            entry.value.as_ref().map(|value| (key, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Slab};

    #[test]
    fn an_old_key_finds_nobody() {
        let mut slab = Slab::new();
        let first = slab.insert("a");
        assert_eq!(slab.remove(first), Some("a"));
        let second = slab.insert("b");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(Key::from_u64(second.to_u64())), Some(&"b"));
        slab.discard(first);
        assert_eq!(slab.len(), 1);
        assert_eq!(slab.iter().count(), 1);
    }
}

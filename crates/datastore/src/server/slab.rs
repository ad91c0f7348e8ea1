//! A table of what is in flight, addressed by small numbers that are reused.

/// Values by key; inserting reuses the keys of removed values and allocates only when more values than
/// ever before are present.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Slab<T> {
        Slab { slots: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity) }
    }

    /// Stores a value and returns its key.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        match self.free.pop() {
            Some(key) => {
                debug_assert!(self.slots[key as usize].is_none(), "a free key names nothing");
                self.slots[key as usize] = Some(value);
                u64::from(key)
            }
            None => {
                self.slots.push(Some(value));
                (self.slots.len() - 1) as u64
            }
        }
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// A value, if the key holds one.
    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        self.slots.get_mut(key as usize)?.as_mut()
    }

    /// Takes a value out, if the key holds one.
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        let value = self.slots.get_mut(key as usize)?.take()?;
        self.free.push(key as u32);
        debug_assert!(self.free.len() <= self.slots.len(), "a key is freed once");
        Some(value)
    }

    /// Takes all values out.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        self.free.clear();
        self.slots.drain(..).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn keys_are_reused_and_values_leave_once() {
        let mut slab = Slab::with_capacity(2);
        let (a, b) = (slab.insert("a"), slab.insert("b"));
        assert_ne!(a, b);
        assert_eq!(slab.remove(a), Some("a"));
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.insert("c"), a);
        let mut rest = slab.drain();
        rest.sort_unstable();
        assert_eq!(rest, ["b", "c"]);
        assert_eq!(slab.remove(b), None);
        assert!(slab.is_empty());
        let key = slab.insert("d");
        assert!(!slab.is_empty() && slab.get_mut(key).is_some());
        slab.remove(key);
        assert!(slab.is_empty());
    }
}

//! Tables of objects.
//!
//! [`Table`] numbers its objects. A number contains the index of the object's slot in a vector, and a generation of 12
//! bits. The generation of a slot changes when its object is removed. Therefore the number of a removed object is
//! invalid even if another object uses the slot.
//!
//! [`ByNumber`] has random numbers as keys, so a peer cannot provoke hash collisions.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Number of lower bits in an object's number that are its index in `Table::slots`. The upper bits are the generation.
const INDEX_BITS: u32 = 20;

/// Maximum number of objects in a table.
pub(crate) const MOST: usize = 1 << INDEX_BITS;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    object: Option<T>,
}

/// Table of the objects of one kind, by number.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds an object. `make` creates it from its number.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u32) -> T) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, object: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let id = slot.generation << INDEX_BITS | index;
        slot.object = Some(make(id));
        id
    }

    fn index(&self, id: u32) -> Option<usize> {
        let index = (id & (MOST as u32 - 1)) as usize;
        let slot = self.slots.get(index)?;
        (slot.generation == id >> INDEX_BITS).then_some(index)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.slots[self.index(id)?].object.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let index = self.index(id)?;
        self.slots[index].object.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let index = self.index(id)?;
        let slot = &mut self.slots[index];
        let object = slot.object.take()?;
        slot.generation = (slot.generation + 1) % (1 << (32 - INDEX_BITS));
        self.free.push(index as u32);
        Some(object)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.object.as_ref())
    }

    /// Returns mutable references to the objects.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.object.as_mut())
    }
}

/// A hash table whose keys are queue pair numbers, or the keys of memory regions.
pub(crate) type ByNumber<T> = HashMap<u32, T, BuildHasherDefault<NumberHasher>>;

/// Hash function for keys that are random numbers. A single multiplication suffices for them.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        // `HashMap` uses the lowest and the highest bits of the hash. The multiplication also sets the highest bits.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_removed_object_is_invalid() {
        let mut table = Table::default();
        let ids: Vec<u32> = (0..4).map(|number| table.insert(|_| number)).collect();
        assert_eq!(table.remove(ids[2]), Some(2));
        assert_eq!(table.remove(ids[2]), None);
        let new = table.insert(|id| id as i32);
        assert_ne!(new, ids[2]);
        assert_eq!(
            (table.get(ids[2]), table.get(new), table.len()),
            (None, Some(&(new as i32)), 4)
        );
        assert_eq!(table.get(u32::MAX), None);
    }
}

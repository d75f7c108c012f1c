//! Arrays whose entries keep their indices when other entries are removed.

/// Index that stands for no entry.
pub(super) const NONE: u32 = u32::MAX;

/// A slot of an array: an entry, or the index of the next free slot.
#[derive(Debug)]
pub(super) enum Slot<T> {
    Free(u32),
    Taken(T),
}

/// An array whose entries keep their indices when other entries are removed. Free slots form a linked list and are
/// reused.
#[derive(Debug)]
pub(super) struct Slots<T> {
    pub(super) slots: Vec<Slot<T>>,
    free: u32,
    pub(super) count: usize,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, count: 0 }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        self.count += 1;
        if self.free == NONE {
            self.slots.push(Slot::Taken(value));
            return (self.slots.len() - 1) as u32;
        }
        let number = self.free;
        let slot = &mut self.slots[number as usize];
        if let Slot::Free(next) = *slot {
            self.free = next;
        }
        *slot = Slot::Taken(value);
        number
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        let slot = self.slots.get_mut(number as usize)?;
        if matches!(slot, Slot::Free(_)) {
            return None;
        }
        let Slot::Taken(value) = std::mem::replace(slot, Slot::Free(self.free)) else {
            return None;
        };
        self.free = number;
        self.count -= 1;
        Some(value)
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        match self.slots.get(number as usize)? {
            Slot::Taken(value) => Some(value),
            Slot::Free(_) => None,
        }
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.slots.get_mut(number as usize)? {
            Slot::Taken(value) => Some(value),
            Slot::Free(_) => None,
        }
    }
}

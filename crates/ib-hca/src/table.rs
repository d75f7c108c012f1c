//! Objects by numbers that are not given again soon: who has the number of an object that is gone finds
//! nothing, rather than another one.

/// The bits of a number that say where the object stands; the others count how often something has
/// stood there.
const PLACE_BITS: u32 = 20;

/// The most objects of a kind.
pub(crate) const MOST: usize = 1 << PLACE_BITS;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    object: Option<T>,
}

/// Objects of a kind.
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

    /// Adds what is made from its number.
    pub(crate) fn insert(&mut self, make: impl FnOnce(u32) -> T) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, object: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[place as usize];
        let id = slot.generation << PLACE_BITS | place;
        slot.object = Some(make(id));
        id
    }

    fn place(&self, id: u32) -> Option<usize> {
        let place = (id & (MOST as u32 - 1)) as usize;
        let slot = self.slots.get(place)?;
        (slot.generation == id >> PLACE_BITS).then_some(place)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.slots[self.place(id)?].object.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let place = self.place(id)?;
        self.slots[place].object.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let place = self.place(id)?;
        let slot = &mut self.slots[place];
        let object = slot.object.take()?;
        slot.generation = (slot.generation + 1) % (1 << (32 - PLACE_BITS));
        self.free.push(place as u32);
        Some(object)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.object.as_ref())
    }

    /// As [`Table::iter`], to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.object.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_what_is_gone_find_nothing() {
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

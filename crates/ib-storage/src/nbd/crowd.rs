//! The memory budget of all programs, which is checked before memory is taken.

use ib_nbd::Session;

/// The number of programs over the budget that may finish a write whose data has come in part, and of those that may have
/// one request that fits neither the budget nor their guarantee.
pub(super) const FINISHING: usize = 4;

/// The input buffer of a program that sends short requests, in bytes.
const INPUT: usize = 128 << 10;

/// The part of the budget that is guaranteed to the programs together, beside the budget itself: a quarter.
const GUARANTEED: usize = 4;

/// The memory that programs have and may have, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    /// The memory of all programs: input, data of outstanding requests, answers, and requests of disconnected programs.
    pub(super) kept: usize,
    /// The budget.
    most: usize,
    /// The memory that each program may have when the budget is used up.
    pub(super) guaranteed: usize,
}

impl Crowd {
    /// The budget is beside the input buffer that each program has.
    pub(super) fn new(kept: usize, most: usize, programs: usize) -> Self {
        let guaranteed = most / GUARANTEED / programs.max(1);
        Self { kept, most: most + programs * INPUT, guaranteed }
    }

    /// Returns true if a program that has some memory, which `kept` includes, may have more.
    fn admits(self, own: usize, more: usize) -> bool {
        self.kept + more <= self.most || own + more <= self.guaranteed + INPUT
    }

    /// Returns true if the next request of a program exceeds the budget and its guarantee.
    pub(super) fn holds_up(self, one: &Session) -> bool {
        !self.admits(one.kept(), one.next_held())
    }

    /// Returns true if input of a program is read. Of those over the budget some finish a write that has come in part.
    pub(super) fn lets_read(self, one: &Session, finishing: &mut usize) -> bool {
        if self.admits(one.kept(), one.growth()) {
            return true;
        }
        let goes_on = *finishing > 0 && one.is_writing() && one.takes();
        *finishing -= usize::from(goes_on);
        goes_on
    }

    /// Returns true if more requests of a program are done, now or when others have less memory.
    pub(super) fn takes(self, one: &Session) -> bool {
        one.takes() && !self.holds_up(one)
    }

    /// Returns true if at least half of the budget is used.
    pub(super) const fn is_half_full(self) -> bool {
        self.kept >= self.most / 2
    }
}

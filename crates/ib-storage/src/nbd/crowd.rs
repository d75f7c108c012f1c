//! The memory budget of all clients, which is checked before each allocation.

use ib_nbd::Session;

/// Maximum number of clients that have a turn to finish a partially received write beyond the budget. Also the maximum number of
/// clients with one request that exceeds both the budget and their guarantee.
pub(super) const FINISHING: usize = 4;

/// Input buffer size of a client with short requests, in bytes.
const INPUT: usize = 128 << 10;

/// Memory guaranteed to all clients together, in addition to the budget: a quarter of the budget.
const GUARANTEED: usize = 4;

/// Memory use and limits of the clients, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    /// Memory of all clients: input, data of outstanding requests, responses, and requests of disconnected clients.
    pub(super) kept: usize,
    /// The budget.
    most: usize,
    /// Memory guaranteed to each client when the budget is used up.
    pub(super) guaranteed: usize,
}

impl Crowd {
    /// The budget does not include the input buffer of each client.
    pub(super) fn new(kept: usize, most: usize, programs: usize) -> Self {
        let guaranteed = most / GUARANTEED / programs.max(1);
        Self { kept, most: most + programs * INPUT, guaranteed }
    }

    /// Returns true if a client with the given memory use, which `kept` includes, may allocate more.
    fn admits(self, own: usize, more: usize) -> bool {
        self.kept + more <= self.most || own + more <= self.guaranteed + INPUT
    }

    /// Returns true if the next request of a client exceeds both the budget and its guarantee.
    pub(super) fn holds_up(self, one: &Session) -> bool {
        !self.admits(one.kept(), one.next_held())
    }

    /// Returns true if input of a client is read within the budget.
    pub(super) fn lets_read(self, one: &Session) -> bool {
        self.admits(one.kept(), one.growth())
    }

    /// Returns true if a client needs a turn beyond the budget to finish a partially received write.
    pub(super) fn needs_turn(self, one: &Session) -> bool {
        !self.lets_read(one) && one.is_writing() && one.takes()
    }

    /// Returns true if more requests of a client can be executed, now or after others release memory.
    pub(super) fn takes(self, one: &Session) -> bool {
        one.takes() && !self.holds_up(one)
    }

    /// Returns true if at least half of the budget is used.
    pub(super) const fn is_half_full(self) -> bool {
        self.kept >= self.most / 2
    }
}

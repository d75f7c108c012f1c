//! The memory budget of all clients, which is checked before each allocation.

use ib_nbd::Session;

/// Budget of all clients, in bytes. In addition there are the input buffers (32 MiB), the guarantees (a quarter of the
/// budget), and the requests that have a turn (up to 32 MiB each). The total is less than 1 GiB.
const BUDGET: usize = 576 << 20;

/// Maximum number of clients that have a turn to receive a write, and of clients that have one to execute a request.
pub(super) const TURNS: usize = 4;

/// Input buffer size of a client with short requests, in bytes.
const INPUT: usize = 128 << 10;

/// Memory guaranteed to all clients together, as a part of the budget.
const GUARANTEED: usize = 4;

/// Minimum peak memory, in bytes, above which free memory is returned to the system.
const TRIMMED: usize = 64 << 20;

/// The budget of a server.
#[derive(Debug)]
pub(super) struct Budget {
    /// [`BUDGET`], except in tests.
    pub(super) limit: usize,
    /// Memory of outstanding requests of disconnected clients, in bytes.
    pub(super) orphaned: usize,
    /// Peak memory since free memory was last returned to the system.
    peak: usize,
    /// True if a client waits for memory.
    pub(super) is_short: bool,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self { limit: BUDGET, orphaned: 0, peak: 0, is_short: false }
    }

    /// Returns the memory use of all clients, and their limits.
    pub(super) fn usage<'a>(&self, sessions: impl Iterator<Item = &'a Session>) -> Usage {
        let (mut kept, mut clients) = (self.orphaned, 0);
        for session in sessions {
            kept += session.kept();
            clients += 1;
        }
        let guaranteed = self.limit / GUARANTEED / clients.max(1);
        Usage { kept, most: self.limit + clients * INPUT, guaranteed }
    }

    /// Returns free memory to the system after a peak, because the allocator keeps it otherwise.
    pub(super) fn return_memory(&mut self, usage: Usage) {
        self.peak = self.peak.max(usage.kept);
        if self.peak >= TRIMMED && usage.kept <= self.peak / 4 {
            self.peak = usage.kept;
            // SAFETY: the call has no preconditions.
            #[cfg(target_env = "gnu")]
            unsafe {
                libc::malloc_trim(0)
            };
        }
    }
}

/// Memory use and limits of the clients, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Memory of all clients: input, data of outstanding requests, responses, and requests of disconnected clients.
    pub(super) kept: usize,
    /// The budget, with an input buffer of each client.
    most: usize,
    /// Memory guaranteed to each client when the budget is used up.
    pub(super) guaranteed: usize,
}

impl Usage {
    /// Notes that the memory use of one client has changed.
    pub(super) const fn changed(&mut self, before: usize, after: usize) {
        self.kept = self.kept - before + after;
    }

    /// Returns true if a client with the given memory use, which `kept` includes, may allocate more.
    const fn admits(self, own: usize, more: usize) -> bool {
        self.kept + more <= self.most || own + more <= self.guaranteed + INPUT
    }

    /// Returns true if the next request of a client needs a turn to be executed. A write does not: its data has arrived.
    pub(super) fn request_needs_turn(self, session: &Session) -> bool {
        !session.is_writing() && !self.admits(session.kept(), session.next_held())
    }

    /// Returns true if input of a client is read without a turn.
    pub(super) fn admits_input(self, session: &Session) -> bool {
        self.admits(session.kept(), session.growth())
    }

    /// Returns true if a client needs a turn to receive the rest of a write.
    pub(super) fn input_needs_turn(self, session: &Session) -> bool {
        !self.admits_input(session) && session.is_writing() && session.takes()
    }

    /// Returns true if more requests of a client can be executed, now or after others release memory.
    pub(super) fn takes(self, session: &Session) -> bool {
        session.takes() && self.admits(session.kept(), session.next_held())
    }

    /// Returns true if at least half of the budget is used.
    pub(super) const fn is_half_full(self) -> bool {
        self.kept >= self.most / 2
    }
}

#[cfg(test)]
mod tests;

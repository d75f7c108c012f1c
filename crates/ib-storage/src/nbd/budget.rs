//! The memory budget of all clients. It is checked before each allocation.

use ib_nbd::Session;

/// Memory budget of all clients together, in bytes.
///
/// In addition to the budget, the clients can use 32 MiB for input buffers, a quarter of the budget as guarantees, and
/// 32 MiB for each turn ([`TURNS`]). Together with the budget, this is less than 1 GiB.
const BUDGET: usize = 576 << 20;

/// Maximum number of clients that have a turn to receive a write at the same time, and of clients that have a turn to
/// execute a request.
pub(super) const TURNS: usize = 4;

/// Memory in bytes that each client may use for its input buffer, in addition to budget and
/// guarantee. It suffices for short requests.
const INPUT: usize = 128 << 10;

/// The guarantees of all clients together are the budget divided by this number. They come in
/// addition to the budget.
const GUARANTEED: usize = 4;

/// Free memory is returned to the system only after the clients have used this many bytes or more.
const TRIMMED: usize = 64 << 20;

/// The memory budget of a server.
#[derive(Debug)]
pub(super) struct Budget {
    /// The memory budget in bytes: [`BUDGET`], except in tests.
    pub(super) limit: usize,
    /// Memory of outstanding requests of disconnected clients, in bytes.
    pub(super) orphaned: usize,
    /// Maximum memory use of all clients, in bytes, since free memory was last returned to the system.
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

    /// Returns free memory to the system after a peak. Otherwise the allocator would keep it.
    pub(super) fn return_memory(&mut self, usage: Usage) {
        self.peak = self.peak.max(usage.kept);
        if self.peak >= TRIMMED && usage.kept <= self.peak / 4 {
            self.peak = usage.kept;
            // SAFETY: `malloc_trim` has no preconditions.
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
    /// Up to this value of `kept`, a client may use more than its guarantee: the budget plus an input buffer for each
    /// client.
    most: usize,
    /// Memory that each client may use even when the budget is used up, in addition to its input buffer.
    pub(super) guaranteed: usize,
}

impl Usage {
    /// Changes the memory use of one client from `before` to `after` bytes.
    pub(super) const fn changed(&mut self, before: usize, after: usize) {
        self.kept = self.kept - before + after;
    }

    /// Returns true if a client that uses `own` bytes may allocate `more` bytes. `kept` includes
    /// the `own` bytes.
    const fn admits(self, own: usize, more: usize) -> bool {
        self.kept + more <= self.most || own + more <= self.guaranteed + INPUT
    }

    /// Returns true if the client needs a turn to execute its next request. A write needs no turn:
    /// its data was already received.
    pub(super) fn request_needs_turn(self, session: &Session) -> bool {
        !session.is_writing() && !self.admits(session.kept(), session.next_held())
    }

    /// Returns true if the client has memory to receive input without a turn.
    pub(super) fn admits_input(self, session: &Session) -> bool {
        self.admits(session.kept(), session.growth())
    }

    /// Returns true if a client has sent part of a write, and needs a turn to receive the rest.
    pub(super) fn input_needs_turn(self, session: &Session) -> bool {
        !self.admits_input(session) && session.is_writing() && session.takes()
    }

    /// Returns true if the client can send more input, and has memory to execute its next request
    /// without a turn.
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

//! Signs of life of the other end.

/// What is done at an interval's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Nothing.
    Wait,
    /// A heartbeat is sent.
    Send,
    /// Nobody is there any more.
    Dead,
}

/// How long nothing was heard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heartbeat {
    /// How many intervals have ended since something was heard.
    missed: u32,
}

impl Heartbeat {
    /// Takes note that the other end lives.
    pub(crate) const fn heard(&mut self) {
        self.missed = 0;
    }

    /// An interval has ended. The end of the other side is known one interval after as many as may be missed, at the
    /// latest; Linux takes another one, as it counts from its first heartbeat without an answer.
    pub(crate) const fn tick(&mut self, missed_max: u32) -> Beat {
        if self.missed > 0 && self.missed >= missed_max {
            return Beat::Dead;
        }
        self.missed += 1;
        if self.missed == 1 { Beat::Send } else { Beat::Wait }
    }
}

#[cfg(test)]
mod tests;

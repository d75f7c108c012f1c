//! How much memory programs have together: beyond a bound those wait that have more than their share of it.

use ib_block::nbd::Session;

/// How many programs that have more than their share finish what they have begun to send, beyond that.
pub(super) const FINISHING: usize = 4;

/// How much programs have together, and may have, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowd {
    pub(super) kept: usize,
    pub(super) most: usize,
    /// What each of them may have in any case.
    pub(super) share: usize,
}

impl Crowd {
    /// Returns whether one of them has to wait.
    pub(super) fn holds_up(self, one: &Session) -> bool {
        self.kept >= self.most && one.kept() >= self.share
    }

    /// Returns whether anything is taken from one of them; of those that wait in the middle of a request some go on.
    pub(super) fn lets_read(self, one: &Session, finishing: &mut usize) -> bool {
        if !self.holds_up(one) {
            return true;
        }
        let goes_on = *finishing > 0 && one.is_writing() && one.takes();
        *finishing -= usize::from(goes_on);
        goes_on
    }

    /// Returns whether more is taken from one of them, now or when others have less.
    pub(super) fn takes(self, one: &Session) -> bool {
        one.takes() && !self.holds_up(one)
    }

    /// The same as [`Crowd::holds_up`] where what that one has is not counted yet.
    pub(super) fn holds_up_all(self, one: &Session) -> bool {
        Self { kept: self.kept + one.kept(), ..self }.holds_up(one)
    }
}

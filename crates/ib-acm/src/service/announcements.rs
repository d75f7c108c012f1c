//! Announcements, similar to gratuitous ARP: the endpoint requests its own address, and the request updates the caches
//! of peers.

use std::time::Duration;

use super::context::{Context, Timer};
use super::datagram::send_request;
use super::groups::MulticastGroups;

/// Mean delay of the first announcement after a change of the endpoint's addresses or joined groups.
const FIRST: Duration = Duration::from_millis(500);
/// Mean interval between announcements.
const INTERVAL: Duration = Duration::from_secs(5);

/// Announcements that an endpoint has yet to send.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    left: u32,
}

impl Announcements {
    /// Schedules the configured number of announcements.
    pub(super) fn start(&mut self, cx: &mut Context<'_>) {
        let count = cx.config().announcements;
        if count > 0 {
            self.left = count;
            let at = cx.now + cx.jitter(FIRST);
            cx.set_timer(at, Timer::Announcement);
        }
    }

    /// Sends an announcement and schedules the next one.
    pub(super) fn handle_timer(&mut self, cx: &mut Context<'_>, groups: &MulticastGroups) {
        if self.left == 0 || groups.base().is_none() {
            return;
        }
        let Some(first) = cx.identity.addresses.first().cloned() else { return };
        self.left -= 1;
        if !cx.port_state().is_active {
            return;
        }
        let tid = cx.random();
        cx.shared.counters.announcements += 1;
        send_request(cx, groups, &first, &first, tid, None);
        if self.left > 0 {
            let at = cx.now + cx.jitter(INTERVAL);
            cx.set_timer(at, Timer::Announcement);
        }
    }
}

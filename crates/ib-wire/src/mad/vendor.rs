//! Vendor classes with an OUI: ibping and ibtracer; IBTA volume 1, chapter 16.5.
//!
//! ```text
//! 24 RMPP header (12)
//! 36 reserved  37 OUI (3)
//! 40 data (216)
//! ```
//!
//! Offsets and sizes are in bytes.

use std::borrow::Cow;

use ib_types::text::is_unsafe;

use crate::mad::{Mad, Method, MgmtClass, TransactionId, attribute};

/// An organizationally unique identifier (OUI), 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oui(pub u32);

impl Oui {
    /// The OUI of OpenIB, which ibping and ibtracer use.
    pub const OPENIB: Self = Self(0x00_1405);
}

/// Access to the OUI field, which is valid only in classes with an OUI ([`MgmtClass::has_oui`]).
impl Mad {
    /// Returns the OUI.
    #[inline]
    #[must_use]
    pub const fn oui(&self) -> Oui {
        Oui(u32::from_be_bytes([0, self.0[37], self.0[38], self.0[39]]))
    }

    /// Sets the OUI to the lower 24 bits of `oui`.
    #[inline]
    pub const fn set_oui(&mut self, oui: Oui) {
        [_, self.0[37], self.0[38], self.0[39]] = oui.0.to_be_bytes();
    }
}

/// Returns a request of ibping: Get with attribute ID 0 and no data.
#[must_use]
pub fn ping(transaction_id: TransactionId) -> Mad {
    let mut mad = Mad::new(MgmtClass::PING, Method::GET, transaction_id);
    mad.set_oui(Oui::OPENIB);
    mad
}

/// Writes the host name into a response of ibping. Truncates it after 215 bytes.
pub fn set_ping_host(mad: &mut Mad, host: &str) {
    let data = &mut mad.0[40..];
    data.fill(0);
    let length = host.len().min(215);
    data[..length].copy_from_slice(&host.as_bytes()[..length]);
}

/// Returns the host name in a response of ibping. Replaces control characters by spaces.
#[must_use]
pub fn ping_host(mad: &Mad) -> Cow<'_, str> {
    let data = &mad.0[40..];
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let text = String::from_utf8_lossy(&data[..end]);
    if text.contains(is_unsafe) { text.replace(is_unsafe, " ").into() } else { text }
}

crate::layout! {
    /// An ibtracer request to the agent of a node, and the agent's response. The request contains the expected path to
    /// the node. The response adds the port at which the request arrived.
    pub struct SourceRoute: 66 {
        /// In a response: the port at which the agent received the request.
        pub incoming_port: u8 = bits(0, 0, 8),
        /// The number of entries of `ports` in use, 0 to 64.
        pub hop_count: u8 = bits(1, 0, 8),
        /// The expected ingress port of each hop on the path to the agent, starting with the first hop.
        pub ports: [u8; 64] = bits(2, 0, 512),
    }
}

attribute!(SourceRoute = SOURCE_ROUTE in TRACER);

impl SourceRoute {
    /// Returns the expected ingress port of the last hop; `None` if the hop count is 0 or above 64.
    #[must_use]
    pub fn expected_port(&self) -> Option<u8> {
        usize::from(self.hop_count).checked_sub(1).and_then(|last| self.ports.get(last)).copied()
    }
}

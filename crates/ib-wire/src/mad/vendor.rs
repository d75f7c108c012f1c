//! Vendor classes with an OUI: ibping and ibtracer; IBTA volume 1, chapter 16.5.
//!
//! ```text
//! 24 RMPP header (12)
//! 36 reserved  37 OUI (3)
//! 40 data (216)
//! ```

use std::borrow::Cow;

use ib_types::text::is_unsafe;

use crate::mad::{Mad, Method, MgmtClass, TransactionId, attribute};

/// The number of an organisation, 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oui(pub u32);

impl Oui {
    /// The number of OpenIB, which ibping and ibtracer use.
    pub const OPENIB: Self = Self(0x00_1405);
}

/// The number of the organisation; it means something in vendor classes that have one.
impl Mad {
    /// Returns the organisation of a datagram of a vendor class.
    #[inline]
    #[must_use]
    pub const fn oui(&self) -> Oui {
        Oui(u32::from_be_bytes([0, self.0[37], self.0[38], self.0[39]]))
    }

    /// Stores the organisation; its highest byte is dropped.
    #[inline]
    pub const fn set_oui(&mut self, oui: Oui) {
        [_, self.0[37], self.0[38], self.0[39]] = oui.0.to_be_bytes();
    }
}

/// Returns a request of ibping: attribute 0, no data.
#[must_use]
pub fn ping(transaction_id: TransactionId) -> Mad {
    let mut mad = Mad::new(MgmtClass::PING, Method::GET, transaction_id);
    mad.set_oui(Oui::OPENIB);
    mad
}

/// Stores the name of the host into the response of ibping; it is cut at 215 bytes.
pub fn set_ping_host(mad: &mut Mad, host: &str) {
    let data = &mut mad.0[40..];
    data.fill(0);
    let length = host.len().min(215);
    data[..length].copy_from_slice(&host.as_bytes()[..length]);
}

/// Returns the name of the host from the response of ibping; control characters are replaced by spaces.
#[must_use]
pub fn ping_host(mad: &Mad) -> Cow<'_, str> {
    let data = &mad.0[40..];
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let text = String::from_utf8_lossy(&data[..end]);
    if text.contains(is_unsafe) { text.replace(is_unsafe, " ").into() } else { text }
}

crate::layout! {
    /// What ibtracer asks the agent of a hop: does the packet come in by the expected port?
    pub struct SourceRoute: 66 {
        /// The port that the packet did come in by; meaningful in the response.
        pub incoming_port: u8 = bits(0, 0, 8),
        /// The number of entries of `ports`, 0 to 64.
        pub hop_count: u8 = bits(1, 0, 8),
        /// The ports that the packet is expected to come in by, the first hop first.
        pub ports: [u8; 64] = bits(2, 0, 512),
    }
}

attribute!(SourceRoute = SOURCE_ROUTE in TRACER);

impl SourceRoute {
    /// Returns the port that the last hop expects; `None` without hops or with more than fit.
    #[must_use]
    pub fn expected_port(&self) -> Option<u8> {
        usize::from(self.hop_count).checked_sub(1).and_then(|last| self.ports.get(last)).copied()
    }
}

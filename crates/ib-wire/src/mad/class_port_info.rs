//! ClassPortInfo: the capabilities of a management class at a port, and the addresses to which
//! requests are redirected and traps are sent; IBTA volume 1, chapter 13.4.8.1.

use ib_types::{Gid, PKey, QKey, Qpn};

use crate::mad::{Attribute, AttributeId, MgmtClass};

crate::layout! {
    /// The capabilities of a management class at a port, and the addresses to which requests are
    /// redirected and traps are sent.
    pub struct ClassPortInfo: 72 {
        /// The base version: 1.
        pub base_version: u8 = bits(0, 0, 8),
        /// The version of the management class.
        pub class_version: u8 = bits(1, 0, 8),
        /// The capabilities. Bit 0: the agent sends traps. Bit 1: the agent supports Get and Set of
        /// notices. Other bits are class specific.
        pub capability_mask: u16 = bits(2, 0, 16),
        /// More capabilities of the agent. All bits are class specific.
        pub capability_mask2: u32 = bits(4, 0, 27),
        /// The maximum response time of the agent: 4.096 µs × 2^value.
        pub resp_time_value: u8 = bits(7, 3, 5),
        /// The GID to which requests are redirected; zero if they are not redirected.
        pub redirect_gid: Gid = bits(8, 0, 128),
        /// The traffic class of redirected requests.
        pub redirect_traffic_class: u8 = bits(24, 0, 8),
        /// The SL of redirected requests.
        pub redirect_sl: u8 = bits(25, 0, 4),
        /// The flow label of redirected requests.
        pub redirect_flow_label: u32 = bits(25, 4, 20),
        /// The LID to which requests are redirected; zero if the requester must use the GID.
        pub redirect_lid: u16 = bits(28, 0, 16),
        /// The P_Key of redirected requests.
        pub redirect_p_key: PKey = bits(30, 0, 16),
        /// The QPN to which requests are redirected.
        pub redirect_qp: Qpn = bits(33, 0, 24),
        /// The Q_Key of redirected requests.
        pub redirect_q_key: QKey = bits(36, 0, 32),
        /// The GID to which traps are sent; zero if no traps are sent.
        pub trap_gid: Gid = bits(40, 0, 128),
        /// The traffic class of traps.
        pub trap_traffic_class: u8 = bits(56, 0, 8),
        /// The SL of traps.
        pub trap_sl: u8 = bits(57, 0, 4),
        /// The flow label of traps.
        pub trap_flow_label: u32 = bits(57, 4, 20),
        /// The LID to which traps are sent.
        pub trap_lid: u16 = bits(60, 0, 16),
        /// The P_Key of traps.
        pub trap_p_key: PKey = bits(62, 0, 16),
        /// The hop limit of traps.
        pub trap_hop_limit: u8 = bits(64, 0, 8),
        /// The QPN to which traps are sent.
        pub trap_qp: Qpn = bits(65, 0, 24),
        /// The Q_Key of traps.
        pub trap_q_key: QKey = bits(68, 0, 32),
    }
}

impl Attribute for ClassPortInfo {
    const ID: AttributeId = AttributeId::CLASS_PORT_INFO;
    const LENGTH: usize = Self::LENGTH;

    #[inline]
    fn belongs_to(class: MgmtClass) -> bool {
        !class.is_smp() && class != MgmtClass::ACM
    }

    fn read(bytes: &[u8]) -> Self {
        Self::parse(bytes.first_chunk().expect("the data is at least as long as the attribute"))
    }

    fn write(&self, bytes: &mut [u8]) {
        self.emit(bytes.first_chunk_mut().expect("the data is at least as long as the attribute"));
    }
}

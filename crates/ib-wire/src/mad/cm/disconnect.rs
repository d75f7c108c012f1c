//! DREQ and DREP: disconnection; IBTA volume 1, chapters 12.6.10 and 12.6.11.

use ib_types::Qpn;

use crate::mad::attribute;

crate::layout! {
    /// DREQ: a request to disconnect.
    pub struct Dreq: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The receiver's QPN.
        pub remote_qpn: Qpn = bits(8, 0, 24),
        /// Private data of the consumer.
        pub private_data: [u8; 220] = bits(12, 0, 1760),
    }
}

attribute!(Dreq = CM_DREQ in COMMUNICATION);

crate::layout! {
    /// DREP: the response to a DREQ.
    pub struct Drep: 232 {
        /// The sender's communication ID.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's communication ID.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// Private data of the consumer.
        pub private_data: [u8; 224] = bits(8, 0, 1792),
    }
}

attribute!(Drep = CM_DREP in COMMUNICATION);

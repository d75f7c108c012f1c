//! DREQ and DREP: the end of a connection; IBTA volume 1, chapters 12.6.10 and 12.6.11.

use ib_types::Qpn;

use crate::mad::attribute;

crate::layout! {
    /// The sender ends the connection.
    pub struct Dreq: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// The receiver's queue pair.
        pub remote_qpn: Qpn = bits(8, 0, 24),
        /// What the consumers say.
        pub private_data: [u8; 220] = bits(12, 0, 1760),
    }
}

attribute!(Dreq = CM_DREQ in COMMUNICATION);

crate::layout! {
    /// The connection has ended on the sender's side too.
    pub struct Drep: 232 {
        /// The sender's number of the connection.
        pub local_comm_id: u32 = bits(0, 0, 32),
        /// The receiver's number of the connection.
        pub remote_comm_id: u32 = bits(4, 0, 32),
        /// What the consumers say.
        pub private_data: [u8; 224] = bits(8, 0, 1792),
    }
}

attribute!(Drep = CM_DREP in COMMUNICATION);

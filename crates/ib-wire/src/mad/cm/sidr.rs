//! Finding the queue pair of a service of datagrams; IBTA volume 1, chapter 12.11.

use ib_types::{PKey, QKey, Qpn};

use crate::mad::attribute;
use crate::mad::codes::codes;

codes! {
    /// Whether a service has a queue pair.
    SidrStatus(u8) {
        /// The queue pair is valid.
        VALID = 0 "QPN valid",
        /// Nobody serves the service.
        INVALID_SERVICE_ID = 1 "service ID not supported",
        /// The service refuses.
        REJECTED = 2 "rejected by service provider",
        /// No queue pair.
        NO_QP = 3 "no QP available",
        /// Another port serves the service.
        REDIRECT = 4 "redirect",
        /// The version of the class is not supported.
        UNSUPPORTED_VERSION = 5 "class version not supported",
    }
}

crate::layout! {
    /// The question for a service's queue pair.
    pub struct SidrReq: 232 {
        /// Ties the answer to the question.
        pub request_id: u32 = bits(0, 0, 32),
        /// The partition.
        pub p_key: PKey = bits(4, 0, 16),
        /// The service.
        pub service_id: u64 = bits(8, 0, 64),
        /// What the consumers say.
        pub private_data: [u8; 216] = bits(16, 0, 1728),
    }
}

attribute!(SidrReq = CM_SIDR_REQ in COMMUNICATION);

crate::layout! {
    /// The answer.
    pub struct SidrRep: 232 {
        /// Ties the answer to the question.
        pub request_id: u32 = bits(0, 0, 32),
        /// Whether the queue pair is valid.
        pub status: SidrStatus = bits(4, 0, 8),
        /// The bytes of `info` that mean something, 0 to 72.
        pub info_length: u8 = bits(5, 0, 8),
        /// The queue pair.
        pub qpn: Qpn = bits(8, 0, 24),
        /// The service.
        pub service_id: u64 = bits(12, 0, 64),
        /// The Q_Key of the queue pair.
        pub q_key: QKey = bits(20, 0, 32),
        /// Further information by status.
        pub info: [u8; 72] = bits(24, 0, 576),
        /// What the consumers say.
        pub private_data: [u8; 136] = bits(96, 0, 1088),
    }
}

attribute!(SidrRep = CM_SIDR_REP in COMMUNICATION);

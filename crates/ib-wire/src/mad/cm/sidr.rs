//! `SIDR_REQ` and `SIDR_REP`: resolution of a service ID to a UD QP; IBTA volume 1, chapter 12.11.

use ib_types::{PKey, QKey, Qpn};

use crate::mad::attribute;
use crate::mad::codes::codes;

codes! {
    /// The status of a `SIDR_REP`.
    SidrStatus(u8) {
        /// Success. The QPN and the Q_Key are valid.
        VALID = 0 "QPN valid",
        /// The service ID is not supported.
        INVALID_SERVICE_ID = 1 "service ID not supported",
        /// The service rejects the request.
        REJECTED = 2 "rejected by service provider",
        /// No QP is available.
        NO_QP = 3 "no QP available",
        /// The request must be sent to another port.
        REDIRECT = 4 "redirect",
        /// The class version is not supported.
        UNSUPPORTED_VERSION = 5 "class version not supported",
    }
}

crate::layout! {
    /// `SIDR_REQ`: a request for the QP of a service.
    pub struct SidrReq: 232 {
        /// The request ID. The response repeats it.
        pub request_id: u32 = bits(0, 0, 32),
        /// The P_Key.
        pub p_key: PKey = bits(4, 0, 16),
        /// The service ID.
        pub service_id: u64 = bits(8, 0, 64),
        /// Private data of the consumer.
        pub private_data: [u8; 216] = bits(16, 0, 1728),
    }
}

attribute!(SidrReq = CM_SIDR_REQ in COMMUNICATION);

crate::layout! {
    /// `SIDR_REP`: the response, with the QP of the service.
    pub struct SidrRep: 232 {
        /// The request ID of the `SIDR_REQ`.
        pub request_id: u32 = bits(0, 0, 32),
        /// The status.
        pub status: SidrStatus = bits(4, 0, 8),
        /// The number of valid bytes of `info`, 0 to 72.
        pub info_length: u8 = bits(5, 0, 8),
        /// The QPN at which the service receives datagrams.
        pub qpn: Qpn = bits(8, 0, 24),
        /// The service ID.
        pub service_id: u64 = bits(12, 0, 64),
        /// The Q_Key of the QP `qpn`.
        pub q_key: QKey = bits(20, 0, 32),
        /// Additional information, whose meaning depends on the status.
        pub info: [u8; 72] = bits(24, 0, 576),
        /// Private data of the consumer.
        pub private_data: [u8; 136] = bits(96, 0, 1088),
    }
}

attribute!(SidrRep = CM_SIDR_REP in COMMUNICATION);

//! Subscriptions (InformInfo), ServiceRecords and forwarded notices; IBTA volume 1, chapters
//! 13.4.8.3, 15.2.5.14 and 15.2.5.15.

use ib_types::{Gid, PKey, Qpn};

use super::record;
use crate::mad::attribute;
use crate::mad::sm::Notice;

crate::layout! {
    /// A subscription to notices.
    pub struct InformInfo: 36 {
        /// The GID that the subscribed notices are about; zero if the LID range is used instead.
        pub gid: Gid = bits(0, 0, 128),
        /// The first LID that the subscribed notices are about; 0xffff for all LIDs.
        pub lid_range_begin: u16 = bits(16, 0, 16),
        /// The last LID that the subscribed notices are about; 0 for a range of one LID.
        pub lid_range_end: u16 = bits(18, 0, 16),
        /// 1 for generic traps, 0 for vendor-specific traps.
        pub is_generic: u8 = bits(22, 0, 8),
        /// 1 to subscribe, 0 to unsubscribe.
        pub subscribe: u8 = bits(23, 0, 8),
        /// The notice type; 0xffff for all types.
        pub notice_type: u16 = bits(24, 0, 16),
        /// The trap number, or the device ID of vendor-specific traps; 0xffff for all traps.
        pub trap: u16 = bits(26, 0, 16),
        /// The QPN that receives the reports. In an unsubscribe request, the QPN of the
        /// subscription to be removed.
        pub qpn: Qpn = bits(28, 0, 24),
        /// The maximum response time of the subscriber: 4.096 µs × 2^value.
        pub resp_time_value: u8 = bits(31, 3, 5),
        /// The producer type, or the vendor ID of vendor-specific traps; 0xffffff for all
        /// producers.
        pub producer: u32 = bits(33, 0, 24),
    }
}

attribute!(InformInfo = INFORM_INFO in SUBN_ADM);

crate::layout! {
    /// A subscription and its subscriber.
    pub struct InformInfoRecord: 64 {
        /// The GID of the subscriber.
        pub subscriber_gid: Gid = bits(0, 0, 128),
        /// The index of the subscription among all subscriptions of the subscriber.
        pub inform_enum: u16 = bits(16, 0, 16),
        /// The subscription.
        pub inform_info: InformInfo = bits(24, 0, 288),
    }
}

record!(InformInfoRecord = INFORM_INFO_RECORD, stride 64 {
    0: subscriber_gid,
    1: inform_enum,
    3: [inform_info InformInfo gid],
    4: [inform_info InformInfo lid_range_begin],
    5: [inform_info InformInfo lid_range_end],
    7: [inform_info InformInfo is_generic],
    8: [inform_info InformInfo subscribe],
    9: [inform_info InformInfo notice_type],
    10: [inform_info InformInfo trap],
    11: [inform_info InformInfo qpn],
    13: [inform_info InformInfo resp_time_value],
    15: [inform_info InformInfo producer],
});

crate::layout! {
    /// A notice that the SA forwards to subscribers, with the GID of its issuer.
    pub struct SaNotice: 80 {
        /// The notice.
        pub notice: Notice = bits(0, 0, 512),
        /// The GID of the issuer.
        pub issuer_gid: Gid = bits(64, 0, 128),
    }
}

attribute!(SaNotice = NOTICE in SUBN_ADM);

crate::layout! {
    /// A ServiceRecord: a service that a port has registered.
    pub struct ServiceRecord: 176 {
        /// The service ID.
        pub service_id: u64 = bits(0, 0, 64),
        /// The GID of the port that provides the service.
        pub service_gid: Gid = bits(8, 0, 128),
        /// The P_Key.
        pub p_key: PKey = bits(24, 0, 16),
        /// The lease in seconds; 0xffffffff if unlimited. The SA deletes the record when the lease
        /// expires.
        pub lease: u32 = bits(28, 0, 32),
        /// The service key, which a request to change the record must contain.
        pub key: [u8; 16] = bits(32, 0, 128),
        /// The name of the service in UTF-8, padded with zeros.
        pub name: [u8; 64] = bits(48, 0, 512),
        /// Private data of the service: 16 numbers of 8 bits.
        pub data8: [u8; 16] = bits(112, 0, 128),
        /// Private data of the service: 8 numbers of 16 bits.
        pub data16: [u16; 8] = bits(128, 0, 128),
        /// Private data of the service: 4 numbers of 32 bits.
        pub data32: [u32; 4] = bits(144, 0, 128),
        /// Private data of the service: 2 numbers of 64 bits.
        pub data64: [u64; 2] = bits(160, 0, 128),
    }
}

record!(ServiceRecord = SERVICE_RECORD, stride 176 {
    0: service_id,
    1: service_gid,
    2: p_key,
    4: lease,
    5: key,
    6: name,
    7: (112 0 8),
    8: (113 0 8),
    9: (114 0 8),
    10: (115 0 8),
    11: (116 0 8),
    12: (117 0 8),
    13: (118 0 8),
    14: (119 0 8),
    15: (120 0 8),
    16: (121 0 8),
    17: (122 0 8),
    18: (123 0 8),
    19: (124 0 8),
    20: (125 0 8),
    21: (126 0 8),
    22: (127 0 8),
    23: (128 0 16),
    24: (130 0 16),
    25: (132 0 16),
    26: (134 0 16),
    27: (136 0 16),
    28: (138 0 16),
    29: (140 0 16),
    30: (142 0 16),
    31: (144 0 32),
    32: (148 0 32),
    33: (152 0 32),
    34: (156 0 32),
    35: (160 0 64),
    36: (168 0 64),
});

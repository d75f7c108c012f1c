//! `PortInfoRecord`; IBTA volume 1, chapter 15.2.5.3.

use super::record;
use crate::mad::sm::PortInfo;

crate::layout! {
    /// A `PortInfoRecord`, which contains the PortInfo of a port.
    pub struct PortInfoRecord: 68 {
        /// The LID of the port; for a port of a switch, the LID of port 0.
        pub lid: u16 = bits(0, 0, 16),
        /// The port number.
        pub port: u8 = bits(2, 0, 8),
        /// Options of a request. If bit 7 is set, the SA reports the actual link speeds. If bit 7 is
        /// clear, OpenSM adapts the speeds to requesters that do not know extended speeds.
        pub options: u8 = bits(3, 0, 8),
        /// The PortInfo attribute.
        pub port_info: PortInfo = bits(4, 0, 512),
    }
}

// If bit 31 of the attribute modifier is set, OpenSM does not compare the capability masks (components
// 7 and 53) for equality: a record then matches if it has all requested capability bits. `matches` compares
// for equality, so its callers must handle this case.
record!(PortInfoRecord = PORT_INFO_RECORD, stride 72 {
    0: lid,
    1: port,
    2: options,
    3: [port_info PortInfo m_key],
    4: [port_info PortInfo gid_prefix],
    5: [port_info PortInfo lid],
    6: [port_info PortInfo master_sm_lid],
    7: [port_info PortInfo capability_mask],
    8: [port_info PortInfo diag_code],
    9: [port_info PortInfo m_key_lease_period],
    10: [port_info PortInfo local_port],
    11: [port_info PortInfo link_width_enabled],
    12: [port_info PortInfo link_width_supported],
    13: [port_info PortInfo link_width_active],
    14: [port_info PortInfo link_speed_supported],
    15: [port_info PortInfo port_state],
    16: [port_info PortInfo phys_state],
    17: [port_info PortInfo link_down_default_state],
    18: [port_info PortInfo m_key_protect],
    20: [port_info PortInfo lmc],
    21: [port_info PortInfo link_speed_active],
    22: [port_info PortInfo link_speed_enabled],
    23: [port_info PortInfo neighbor_mtu],
    24: [port_info PortInfo master_sm_sl],
    25: [port_info PortInfo vl_cap],
    26: [port_info PortInfo init_type],
    27: [port_info PortInfo vl_high_limit],
    28: [port_info PortInfo vl_arbitration_high_cap],
    29: [port_info PortInfo vl_arbitration_low_cap],
    30: [port_info PortInfo init_type_reply],
    31: [port_info PortInfo mtu_cap],
    32: [port_info PortInfo vl_stall_count],
    33: [port_info PortInfo hoq_life],
    34: [port_info PortInfo operational_vls],
    35: [port_info PortInfo partition_enforcement_inbound],
    36: [port_info PortInfo partition_enforcement_outbound],
    37: [port_info PortInfo filter_raw_inbound],
    38: [port_info PortInfo filter_raw_outbound],
    39: [port_info PortInfo m_key_violations],
    40: [port_info PortInfo p_key_violations],
    41: [port_info PortInfo q_key_violations],
    42: [port_info PortInfo guid_cap],
    43: [port_info PortInfo client_reregister],
    45: [port_info PortInfo subnet_timeout],
    47: [port_info PortInfo resp_time_value],
    48: [port_info PortInfo local_phy_errors],
    49: [port_info PortInfo overrun_errors],
    50: [port_info PortInfo max_credit_hint],
    52: [port_info PortInfo link_round_trip_latency],
    53: [port_info PortInfo capability_mask2],
    54: [port_info PortInfo link_speed_ext_active],
    55: [port_info PortInfo link_speed_ext_supported],
    57: [port_info PortInfo link_speed_ext_enabled],
});

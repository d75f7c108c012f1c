use ib_types::{Guid, LinkSpeed, LinkWidth};

use super::*;
use crate::mad::{AttributeId, Method};

#[test]
fn widths_and_speeds_convert_to_masks_and_back() {
    for width in LinkWidth::ALL {
        assert_eq!(LinkWidthMask::from(width).active(), Some(width));
    }
    let all: LinkWidthMask = LinkWidth::ALL.into_iter().collect();
    assert_eq!(all, LinkWidthMask(0x1f));
    assert!(all.widths().eq(LinkWidth::ALL));
    assert_eq!(all.active(), None);
    for speed in LinkSpeed::ALL {
        assert_eq!(SpeedSet::from_active(speed).active(), Some(speed));
        let set: SpeedSet = [speed].into_iter().collect();
        assert!(set.speeds().eq([speed]));
    }
    let all: SpeedSet = LinkSpeed::ALL.into_iter().collect();
    assert!(all.speeds().eq(LinkSpeed::ALL));
}

#[test]
fn xdr_is_encoded_in_byte_56() {
    let mut bytes = [0; 64];
    bytes[56] = 0b0010_1001;
    let info = PortInfo::parse(&bytes);
    assert_eq!(info.active_speeds(None).active(), Some(LinkSpeed::Xdr));
    assert_eq!(info.supported_speeds(None).active(), Some(LinkSpeed::Xdr));
    assert_eq!(info.enabled_speeds(None).active(), Some(LinkSpeed::Xdr));
    assert_eq!(info.to_bytes(), bytes);
}

#[test]
fn fdr10_needs_the_mellanox_attribute() {
    let set = SpeedSet::from_active(LinkSpeed::Fdr10);
    let mut info = PortInfo::zeroed();
    info.set_active_speeds(set);
    let mellanox = MlnxExtPortInfo { link_speed_active: set.mellanox, ..MlnxExtPortInfo::zeroed() };
    assert_eq!(info.active_speeds(None).active(), Some(LinkSpeed::Qdr));
    assert_eq!(info.active_speeds(Some(&mellanox)).active(), Some(LinkSpeed::Fdr10));
}

#[test]
fn higher_priority_or_lower_guid_outranks() {
    let one = SmInfo { priority: 5, guid: Guid(9), ..SmInfo::zeroed() };
    assert!(SmInfo { priority: 6, guid: Guid(10), ..one }.outranks(&one));
    assert!(SmInfo { guid: Guid(8), ..one }.outranks(&one));
    assert!(!one.outranks(&one));
    assert_eq!(
        SmInfo { state: SmState::MASTER, act_count: 3, ..one }.to_string(),
        "sm guid 0x9, activity count 3 priority 5 state 3 SMINFO_MASTER"
    );
}

#[test]
fn notice_details_depend_on_the_trap_number() {
    let mut notice = Notice::zeroed();
    notice.is_generic = true;
    notice.trap = TrapNumber::LOCAL_CHANGES;
    notice.data[2..14].copy_from_slice(&[0, 7, 0, 1, 0, 0, 0, 2, 0, 8, 0, 0x20]);
    let NoticeDetails::LocalChange(details) = notice.details() else { panic!("{notice:?}") };
    assert_eq!((details.lid, details.other_changes), (7, true));
    assert_eq!(details.capability_mask, CapabilityMask::SM);
    assert_eq!(details.changes.to_string(), "SMPriority");
    assert_eq!(details.capability_mask2, CapabilityMask2::LINK_SPEED_HDR);
    for trap in 0..300 {
        notice.trap = TrapNumber(trap);
        let mut copy = notice;
        copy.set_details(&notice.details());
        assert_eq!(copy, notice, "trap {trap}");
    }
    notice.is_generic = false;
    assert_eq!(notice.details(), NoticeDetails::Raw(notice.data));
}

/// The details of trap 256 have the offsets that OpenSM and Wireshark use.
#[test]
fn details_of_bad_m_key_trap_are_parsed() {
    let mut notice = Notice::zeroed();
    (notice.is_generic, notice.trap) = (true, TrapNumber::BAD_M_KEY);
    notice.data[2..14].copy_from_slice(&[0, 7, 0, 9, 2, 0, 0, 0x15, 0, 0, 0, 3]);
    notice.data[14..22].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    notice.data[23] = 0x80 | 0x40 | 30;
    for (hop, byte) in (1..).zip(&mut notice.data[24..]) {
        *byte = hop;
    }
    let NoticeDetails::MKey(details) = notice.details() else { panic!("{notice:?}") };
    assert_eq!((details.lid, details.dr_slid, details.method), (7, 9, Method::SET));
    assert_eq!((details.attribute_id, details.attribute_modifier), (AttributeId::PORT_INFO, 3));
    assert_eq!(details.m_key, 0x0102_0304_0506_0708);
    assert!(details.is_directed && details.path_truncated);
    assert_eq!((details.hops, details.return_path[0], details.return_path[29]), (30, 1, 30));
}

#[test]
fn sl_to_vl_entries_have_four_bits() {
    let table = SlToVl::parse(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
    assert!(table.lanes.iter().map(|lane| lane.get()).eq(0..16));
    assert_eq!(SlToVl::modifier(3, 7), 0x307);
}

#[test]
fn long_description_is_truncated_at_a_character() {
    let text = "ä".repeat(40);
    assert_eq!(NodeDescription::new(&text).to_string(), "ä".repeat(32));
    assert_eq!(NodeDescription::new(&format!("x{text}")).to_string().len(), 63);
}

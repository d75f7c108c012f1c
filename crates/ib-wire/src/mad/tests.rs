mod formats;

use super::*;
use crate::mad::sm::{NodeInfo, PortInfo};

#[test]
fn accessors_match_the_layout_of_the_header() {
    let mut mad =
        Mad::new(MgmtClass::PERFORMANCE, Method::SET, TransactionId(0x1122_3344_5566_7788));
    mad.set_status(MadStatus::BAD_FIELD);
    mad.set_attribute_id(AttributeId::PORT_COUNTERS);
    mad.set_attribute_modifier(0x0a0b_0c0d);
    let header = mad.header();
    assert_eq!(header.base_version, mad.base_version());
    assert_eq!(header.class, mad.class());
    assert_eq!(header.class_version, mad.class_version());
    assert_eq!(header.method, mad.method());
    assert_eq!(header.status, mad.status());
    assert_eq!(header.transaction_id, mad.transaction_id());
    assert_eq!(header.attribute_id, mad.attribute_id());
    assert_eq!(header.attribute_modifier, mad.attribute_modifier());
    assert_eq!(mad.0[..24], header.to_bytes());
    assert_eq!(
        mad.to_string(),
        "Perf Set PortCounters mod 0xa0b0c0d tid 0x1122334455667788 0x001c (bad field)"
    );
}

#[test]
fn methods_have_responses() {
    for (request, response) in [
        (Method::GET, Some(Method::GET_RESP)),
        (Method::SET, Some(Method::GET_RESP)),
        (Method::SEND, None),
        (Method::TRAP, Some(Method::TRAP_REPRESS)),
        (Method::REPORT, Some(Method::REPORT_RESP)),
        (Method::TRAP_REPRESS, None),
        (Method::GET_TABLE, Some(Method::GET_TABLE_RESP)),
        (Method::GET_TRACE_TABLE, Some(Method::GET_TRACE_TABLE_RESP)),
        (Method::GET_MULTI, Some(Method::GET_MULTI_RESP)),
        (Method::DELETE, Some(Method::DELETE_RESP)),
        (Method::GET_RESP, None),
        (Method(0x42), Some(Method(0xc2))),
    ] {
        assert_eq!(request.response(), response, "{request}");
        assert!(response.is_none_or(Method::is_response), "{request}");
    }
}

#[test]
fn offset_and_length_of_data_depend_on_the_class() {
    for (class, offset, length) in [
        (MgmtClass::SUBN_LID_ROUTED, 64, 64),
        (MgmtClass::SUBN_DIRECTED_ROUTE, 64, 64),
        (MgmtClass::SUBN_ADM, 56, 200),
        (MgmtClass::PERFORMANCE, 64, 192),
        (MgmtClass::COMMUNICATION, 24, 232),
        (MgmtClass(0x09), 24, 232),
        (MgmtClass::ACM, 24, 232),
        (MgmtClass::TRACER, 40, 216),
    ] {
        let mad = Mad::new(class, Method::GET, TransactionId(0));
        assert_eq!((class.data_offset(), mad.data().len()), (offset, length), "{class}");
    }
}

#[test]
fn attribute_is_parsed_only_if_id_and_class_match() {
    let mut mad = Mad::new(MgmtClass::SUBN_DIRECTED_ROUTE, Method::GET_RESP, TransactionId(1));
    mad.set_attribute(&NodeInfo { num_ports: 36, ..NodeInfo::zeroed() });
    assert_eq!(mad.attribute::<NodeInfo>().map(|info| info.num_ports), Some(36));
    assert_eq!(mad.attribute::<PortInfo>(), None);
    // In the SA class, the attribute ID of NodeInfo has another meaning.
    mad.0[1] = MgmtClass::SUBN_ADM.0;
    assert_eq!(mad.attribute::<NodeInfo>(), None);
}

#[test]
fn busy_and_redirect_together_are_not_busy() {
    let busy = [0x0001, 0x0101, 0x0005];
    // Some agents write code 7 (invalid field) to bits 0 to 2 (0x0007), instead of bits 2 to 4 (0x001c).
    let others = [0x0000, 0x0002, 0x0003, 0x001c, 0x0100, 0x0700, 0x0007];
    assert!(busy.into_iter().all(|status| MadStatus(status).is_busy()));
    assert!(!others.into_iter().any(|status| MadStatus(status).is_busy()));
}

#[test]
fn status_excludes_the_direction_bit() {
    let mut mad = Mad::new(MgmtClass::SUBN_DIRECTED_ROUTE, Method::GET, TransactionId(1));
    mad.set_returning(true);
    assert_eq!(mad.status(), MadStatus::OK);
    mad.set_status(MadStatus::BAD_FIELD);
    assert!(mad.is_returning());
    assert_eq!(mad.status(), MadStatus::BAD_FIELD);
    assert_eq!(mad.0[4..6], [0x80, 0x1c]);
}

#[test]
fn unknown_codes_are_displayed_as_numbers() {
    let mad = Mad([0xee; 256]);
    assert_eq!(
        mad.to_string(),
        "0xee 0xee 0xeeee mod 0xeeeeeeee tid 0xeeeeeeeeeeeeeeee \
         0xeeee (redirect, bad method for attribute, class specific)"
    );
}

//! Parses, displays, forwards and encodes arbitrary MADs of 256 bytes.
#![no_main]

use std::fmt::{Debug, Write};

use ib_types::NodeKind;
use ib_wire::mad::sa::{self, Record};
use ib_wire::mad::smp::{HopNode, answer, receive, send};
use ib_wire::mad::{Attribute, ClassPortInfo, Mad, MadStatus, acm, cm, pm, rmpp, sm, vendor};
use libfuzzer_sys::fuzz_target;

/// Checks that a parsed attribute is encoded to the same bytes.
fn check<A: Attribute + Debug + PartialEq>(mad: &Mad) {
    let Some(attribute) = mad.attribute::<A>() else { return };
    let mut copy = *mad;
    copy.set_attribute(&attribute);
    assert_eq!(copy, *mad);
    assert_eq!(A::read(copy.data()), attribute);
    let mut text = String::new();
    write!(text, "{attribute:?}").expect("writing to a `String` does not fail");
}

fn check_record<R: Record + Debug + PartialEq>(mad: &Mad) {
    check::<R>(mad);
    let header = mad.sa();
    for record in sa::records::<R>(&mad.0[56..], header.attribute_offset) {
        let bytes = record.to_record();
        assert!(sa::matches(header.component_mask, R::COMPONENTS, &bytes, &bytes));
    }
}

macro_rules! all {
    ($check:ident, $mad:ident: $($kind:path),+ $(,)?) => { $( $check::<$kind>(&$mad); )+ };
}

fuzz_target!(|bytes: [u8; 256]| {
    let mad = Mad(bytes);
    assert!(
        !format!("{mad} {mad:?} {:?} {:?} {:?}", mad.header(), mad.rmpp(), mad.sa()).is_empty()
    );
    assert_eq!(acm::AcmMessage::parse(&mad.0).groups().len(), usize::from(mad.0[20]).min(6));
    let _ = vendor::ping_host(&mad);
    if let Some(data) = rmpp::data_per_segment(mad.class()) {
        let _ = rmpp::last_data(mad.rmpp().length_or_window, data);
    }
    if let Some(notice) = mad.attribute::<sm::Notice>() {
        let mut copy = notice;
        copy.set_details(&notice.details());
        assert_eq!(copy, notice);
    }
    if let Some(record) = mad.attribute::<sa::MultiPathRecord>() {
        let _ = record.gids(mad.data());
    }
    all!(check, mad:
        ClassPortInfo, sm::NodeDescription, sm::NodeInfo, sm::GuidInfo, sm::SwitchInfo,
        sm::LinearForwardingBlock, sm::MulticastForwardingBlock, sm::PortInfo, sm::MlnxExtPortInfo,
        sm::PortInfoExtended, sm::PKeyTable, sm::SlToVl, sm::VlArbitration, sm::SmInfo, sm::Notice,
        sa::InformInfo, sa::SaNotice, sa::MultiPathRecord, pm::PortCounters,
        pm::PortCountersExtended, pm::PortRcvErrorDetails, pm::PortXmitDiscardDetails,
        pm::PortSamplesControl, pm::PortSamplesResult, pm::PortExtSpeedsCounters,
        vendor::SourceRoute, cm::Req, cm::Rep, cm::Rtu, cm::Rej, cm::Mra, cm::Dreq, cm::Drep, cm::SidrReq, cm::SidrRep, cm::Lap, cm::Apr,
    );
    all!(check_record, mad:
        sa::GuidInfoRecord, sa::InformInfoRecord, sa::LinearForwardingRecord, sa::LinkRecord,
        sa::MCMemberRecord, sa::MulticastForwardingRecord, sa::NodeRecord, sa::PKeyTableRecord,
        sa::PathRecord, sa::PortInfoRecord, sa::ServiceRecord, sa::SlToVlRecord, sa::SmInfoRecord,
        sa::SwitchInfoRecord, sa::VlArbitrationRecord,
    );
    for kind in [NodeKind::ChannelAdapter, NodeKind::Switch, NodeKind::Router] {
        let node = HopNode { kind, ports: mad.0[40] };
        let mut copy = mad;
        receive(&mut copy, node, 1);
        answer(&mut copy, MadStatus::OK);
        send(&mut copy, node);
    }
});

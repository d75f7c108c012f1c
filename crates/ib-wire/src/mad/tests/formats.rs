//! For all layouts, `emit` restores the parsed bytes, and fields neither overlap nor exceed the
//! layout.

use proptest::prelude::*;

use crate::layout::{self, FieldInfo};
use crate::mad::acm::AcmMessage;
use crate::mad::cm::{
    Apr, ConnectPath, Drep, Dreq, Lap, Mra, Rej, Rep, Req, Rtu, SidrRep, SidrReq,
};
use crate::mad::pm::*;
use crate::mad::rmpp::RmppHeader;
use crate::mad::sa::*;
use crate::mad::sm::notice::{
    GidDetails, KeyDetails, LinkStateDetails, LocalChangeDetails, MKeyDetails, PortDetails,
    SwitchKeyDetails, SystemImageDetails,
};
use crate::mad::sm::*;
use crate::mad::vendor::SourceRoute;
use crate::mad::{ClassPortInfo, Mad, MadHeader, MgmtClass};

/// Returns a mask of the bits that belong to fields.
fn covered(fields: &[FieldInfo], length: usize) -> Vec<u8> {
    let mut mask = vec![0; length];
    for FieldInfo { name, at } in fields {
        for index in 0..at.width {
            let bit = at.part(index, at.width);
            assert_eq!(layout::get(&mask, bit), 0, "{name} overlaps another field");
            layout::set(&mut mask, bit, 1);
        }
    }
    mask
}

macro_rules! formats {
    ($bytes:ident, $ones:ident: $($format:ident)+) => {$({
        let name = stringify!($format);
        let mask = covered($format::FIELDS, $format::LENGTH);
        let bytes = $bytes.first_chunk().unwrap();
        let parsed = $format::parse(bytes);
        // If all bits are ones, parsing and emitting them clears exactly the reserved bits,
        // including those of nested layouts.
        let nested = $format::parse($ones.first_chunk().unwrap()).to_bytes();
        prop_assert!(nested.iter().zip(&mask).all(|(bit, mask)| bit & !mask == 0), "{}", name);
        let expected: Vec<u8> = bytes.iter().zip(&nested).map(|(byte, mask)| byte & mask).collect();
        prop_assert_eq!(&parsed.to_bytes()[..], &expected[..], "{}", name);
        // `emit` does not change reserved bits of the buffer.
        let mut over = *$ones.first_chunk().unwrap();
        parsed.emit(&mut over);
        let kept = over.iter().zip(&nested).all(|(byte, mask)| byte & !mask == !mask);
        prop_assert!(kept, "{} changes reserved bits", name);
        prop_assert_eq!($format::parse(&over), parsed, "{}", name);
    })+};
}

proptest! {
    #[test]
    fn every_layout_survives_a_round_trip(bytes in prop::collection::vec(any::<u8>(), 256)) {
        let ones = [0xff; 256];
        formats!(bytes, ones:
            MadHeader RmppHeader SaHeader ClassPortInfo AcmMessage SourceRoute
            NodeDescription NodeInfo GuidInfo SwitchInfo LinearForwardingBlock
            MulticastForwardingBlock PortInfo MlnxExtPortInfo PortInfoExtended PKeyTable SlToVl
            VlArbitrationEntry VlArbitration SmInfo Notice GidDetails KeyDetails LinkStateDetails
            LocalChangeDetails MKeyDetails PortDetails SwitchKeyDetails SystemImageDetails
            GuidInfoRecord InformInfo InformInfoRecord LinearForwardingRecord LinkRecord
            MCMemberRecord MulticastForwardingRecord MultiPathRecord NodeRecord PKeyTableRecord
            PathRecord PortInfoRecord SaNotice ServiceRecord SlToVlRecord SmInfoRecord
            SwitchInfoRecord VlArbitrationRecord
            PortCounters PortCountersExtended PortRcvErrorDetails PortXmitDiscardDetails
            PortSamplesControl PortSamplesResult PortExtSpeedsCounters
            ConnectPath Req Rep Rtu Rej Mra Dreq Drep SidrReq SidrRep Lap Apr
        );
    }

    #[test]
    fn any_bytes_of_any_class_can_be_displayed_and_parsed(
        bytes in prop::collection::vec(any::<u8>(), 256),
        class in any::<u8>(),
    ) {
        let mut mad = Mad(bytes.try_into().unwrap());
        mad.0[1] = class;
        let end = MgmtClass(class).data_end();
        prop_assert_eq!(mad.data().len(), end - MgmtClass(class).data_offset());
        let text = format!("{mad} {mad:?}");
        prop_assert!(text.len() > 512);
        if let Some(info) = mad.attribute::<ClassPortInfo>() {
            let mut copy = mad;
            copy.set_attribute(&info);
            prop_assert_eq!(copy, mad);
        }
    }
}

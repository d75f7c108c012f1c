use ib_wire::mad::sa::{PathRecord, SaHeader};
use ib_wire::mad::{Attribute, AttributeId, Method, MgmtClass, TransactionId};

use super::*;

fn answer(class: MgmtClass, length: u16) -> Message {
    let mad = Mad::new(class, Method::GET_RESP, TransactionId(1));
    Message::plain(Datagram { length, ..Datagram::new(Remote::gsi(1), mad) })
}

#[test]
fn data_of_one_mad_ends_at_the_datagram_length() {
    let cases = [
        (MgmtClass::SUBN_ADM, 256, 200),
        (MgmtClass::SUBN_ADM, 60, 4),
        (MgmtClass::SUBN_ADM, 56, 0),
        (MgmtClass::SUBN_ADM, 0, 0),
        (MgmtClass::SUBN_ADM, u16::MAX, 200),
        (MgmtClass::SUBN_LID_ROUTED, 256, 64),
        (MgmtClass::TRACER, 106, 66),
    ];
    for (class, length, data) in cases {
        assert_eq!(answer(class, length).data().len(), data, "{class}, length {length}");
    }
}

#[test]
fn records_are_split_by_the_attribute_offset() {
    let path = PathRecord { dlid: 7, ..PathRecord::zeroed() };
    let mut data = vec![0; 3 * PathRecord::LENGTH];
    for record in data.chunks_mut(PathRecord::LENGTH) {
        path.write(record);
    }
    let mut datagram = *answer(MgmtClass::SUBN_ADM, 256).datagram();
    datagram.mad.set_attribute_id(AttributeId::PATH_RECORD);
    let attribute_offset = (PathRecord::LENGTH / 8) as u16;
    datagram.mad.set_sa(&SaHeader { attribute_offset, ..SaHeader::zeroed() });
    let message = Message::reassembled(datagram, data.clone());
    assert_eq!(message.stride(), 64);
    assert_eq!(message.records::<PathRecord>().collect::<Vec<_>>(), [path; 3]);
    datagram.mad.set_status(MadStatus::SA_NO_RECORDS);
    assert_eq!(Message::reassembled(datagram, data).records::<PathRecord>().count(), 0);
}

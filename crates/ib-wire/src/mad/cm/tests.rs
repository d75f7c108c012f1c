use ib_types::{Guid, PKey, Psn, Qpn};

use super::*;
use crate::mad::cm::connect::TransportService;
use crate::mad::sm::MtuCode;
use crate::mad::{Mad, Method, MgmtClass, TransactionId};

fn mad(parts: &[&str]) -> Mad {
    let text: String = parts.concat();
    let mut mad = Mad::default();
    for (index, pair) in text.as_bytes().chunks(2).enumerate() {
        let pair = std::str::from_utf8(pair).unwrap();
        mad.0[index] = u8::from_str_radix(pair, 16).unwrap();
    }
    mad
}

#[test]
fn linux_req_is_parsed() {
    let mad = mad(&[
        "010702030000000000000002980e1545001000000000000045150e98000000000000000001",
        "0604d2505400fffe00770200000000000000000000110000000000000000a0ccd920a7ffff37f0ffffffff",
        "00000000000000000000ffffc0a84d0200000000000000000000ffffc0a84d010354100000400098",
    ]);
    assert_eq!(mad.to_string(), "ComMgt Send ConnectRequest mod 0x0 tid 0x00000002980e1545 ok");
    let req: Req = mad.attribute().unwrap();
    assert_eq!(req.local_comm_id, 0x4515_0e98);
    assert_eq!(req.service_id, 0x0106_04d2);
    assert_eq!(req.local_ca_guid, Guid(0x5054_00ff_fe00_7702));
    assert_eq!(Some(req.local_qpn), Qpn::new(0x11));
    assert_eq!(req.remote_cm_response_timeout, 20);
    assert_eq!((req.transport, req.flow_control), (TransportService::RC, false));
    assert_eq!(Some(req.starting_psn), Psn::new(0xcc_d920));
    assert_eq!((req.local_cm_response_timeout, req.retry_count), (20, 7));
    assert_eq!((req.p_key, req.path_mtu), (PKey(0xffff), MtuCode::MTU_1024));
    assert_eq!((req.rnr_retry_count, req.max_cm_retries, req.srq), (7, 15, false));
    let path = req.primary_path;
    assert_eq!((path.local_lid, path.remote_lid), (0xffff, 0xffff));
    assert_eq!(path.local_gid.to_string(), "::ffff:192.168.77.2");
    assert_eq!(path.remote_gid.to_string(), "::ffff:192.168.77.1");
    assert_eq!((path.flow_label, path.hop_limit, path.local_ack_timeout), (0x3541, 64, 19));
    assert_eq!(req.alternate_path, ConnectPath::zeroed());
}

#[test]
fn linux_rep_is_parsed_and_encoded() {
    let mad = mad(&[
        "010702030000000000000002980e15450013000000000000",
        "b35172e845150e9800000000000011000000000064dd1500000078e0505400fffe007701",
        "bd1b00020000000200f001000010000002",
    ]);
    let rep: Rep = mad.attribute().unwrap();
    assert_eq!((rep.local_comm_id, rep.remote_comm_id), (0xb351_72e8, 0x4515_0e98));
    assert_eq!(Some(rep.local_qpn), Qpn::new(0x11));
    assert_eq!(Some(rep.starting_psn), Psn::new(0x64_dd15));
    assert_eq!((rep.target_ack_delay, rep.rnr_retry_count, rep.srq), (15, 7, false));
    assert_eq!(rep.local_ca_guid, Guid(0x5054_00ff_fe00_7701));
    assert_eq!(rep.private_data[..4], [0xbd, 0x1b, 0, 2]);
    let mut copy = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, TransactionId(0x2_980e_1545));
    copy.set_attribute(&rep);
    assert_eq!(copy, mad);
}

#[test]
fn private_data_is_the_last_field_of_all_messages() {
    macro_rules! ends {
        ($($message:ident)+) => {
            $(assert_eq!(
                $message::FIELDS.last().map(|field| (field.name, field.at.byte + field.at.width / 8)),
                Some(("private_data", 232)),
                stringify!($message)
            );)+
        };
    }
    ends!(Req Rep Rtu Rej Mra Dreq Drep SidrReq SidrRep Lap Apr);
}

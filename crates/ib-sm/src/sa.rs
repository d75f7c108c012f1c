//! Subnet administration: what ports ask about the subnet; IBTA volume 1, chapter 15.
//!
//! | file | holds |
//! |---|---|
//! | `sa` | requests and their answers |
//! | `subnet` | what is known of the subnet, with indexes |
//! | `records` | what a sweep has found and written |
//! | `path` | PathRecords |

use ib_link::{Datagram, Incoming};
use ib_mad::{Message, Responder, ResponderConfig, ResponderEvent};
use ib_types::Instant;
use ib_wire::mad::sa::{
    GuidInfoRecord, LinearForwardingRecord, LinkRecord, NodeRecord, PKeyTableRecord, PathRecord,
    PortInfoRecord, Record, SaHeader, SlToVlRecord, SmInfoRecord, SwitchInfoRecord,
};
use ib_wire::mad::sm::SmInfo;
use ib_wire::mad::{AttributeId, ClassPortInfo, Mad, MadStatus, Method, MgmtClass};

use crate::tables::Tables;

mod path;
mod records;
pub(crate) mod subnet;

use records::Query;
use subnet::Subnet;

/// The version of the class.
const VERSION: u8 = 2;

/// What administration answers by.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// The subnet, once it was up.
    pub(crate) subnet: Option<&'a Subnet>,
    pub(crate) tables: &'a Tables,
    /// What the manager says of itself.
    pub(crate) manager: SmInfo,
}

/// The administration of a subnet.
#[derive(Debug)]
pub(crate) struct Administration {
    responder: Responder,
}

/// The records of an answer, one behind the other.
struct Records {
    bytes: Vec<u8>,
    stride: usize,
    /// The length of a record without the gap to the next one.
    length: usize,
}

impl Records {
    fn of<R: Record>(bytes: Vec<u8>) -> Self {
        Self { bytes, stride: R::STRIDE, length: R::LENGTH }
    }
}

impl Administration {
    pub(crate) fn new() -> Self {
        Self { responder: Responder::new(ResponderConfig::default()) }
    }

    /// Takes a datagram. Returns true when it was for administration.
    pub(crate) fn handle(&mut self, now: Instant, incoming: &Incoming, known: Known<'_>) -> bool {
        let (Incoming::Received(datagram) | Incoming::Lost(datagram)) = incoming;
        if datagram.mad.class() != MgmtClass::SUBN_ADM || !self.responder.handle(now, incoming) {
            return false;
        }
        while let Some(event) = self.responder.poll_event() {
            if let ResponderEvent::Request(request) = event {
                self.answer(&request, known);
            }
        }
        true
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.responder.handle_timeout(now);
        while self.responder.poll_event().is_some() {}
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.responder.poll_transmit(now)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.responder.poll_timeout()
    }

    fn answer(&mut self, request: &Message, known: Known<'_>) {
        let mad = request.mad();
        // A manager that has no subnet yet, or none any more, does not answer: who asks will ask
        // again, or somebody else.
        let Some(subnet) = known.subnet else { return };
        let key = mad.sa().sm_key;
        if key != 0 && key != known.manager.sm_key {
            return;
        }
        if mad.class_version() != VERSION {
            return self.refuse(request, MadStatus::BAD_VERSION);
        }
        match (mad.method(), mad.attribute_id()) {
            (Method::GET, AttributeId::CLASS_PORT_INFO) => self.class_port_info(request),
            (Method::GET | Method::GET_TABLE, _) => {
                match read(request, subnet, known) {
                    Ok(records) if mad.method() == Method::GET => self.one(request, &records),
                    Ok(records) => self.table(request, records),
                    Err(status) => self.refuse(request, status),
                }
            }
            _ => self.refuse(request, MadStatus::BAD_METHOD_ATTRIBUTE),
        }
    }

    fn refuse(&mut self, request: &Message, status: MadStatus) {
        let mut mad = header(request.mad(), status, 0);
        mad.data_mut().fill(0);
        self.responder.respond(request.datagram(), mad, MgmtClass::SUBN_ADM.data_offset() as u16);
    }

    /// Answers Get: exactly one record is an answer.
    fn one(&mut self, request: &Message, records: &Records) {
        match records.bytes.len() / records.stride {
            0 => self.refuse(request, MadStatus::SA_NO_RECORDS),
            1 => self.plain(request, &records.bytes[..records.length]),
            _ => self.refuse(request, MadStatus::SA_TOO_MANY_RECORDS),
        }
    }

    /// Answers with one datagram.
    fn plain(&mut self, request: &Message, attribute: &[u8]) {
        let mut mad = header(request.mad(), MadStatus::OK, 0);
        mad.data_mut().fill(0);
        mad.data_mut()[..attribute.len()].copy_from_slice(attribute);
        let length = MgmtClass::SUBN_ADM.data_offset() + attribute.len();
        self.responder.respond(request.datagram(), mad, length as u16);
    }

    /// Answers with a table, of any length.
    fn table(&mut self, request: &Message, records: Records) {
        let distance = if records.bytes.is_empty() { 0 } else { records.stride / 8 };
        let mad = header(request.mad(), MadStatus::OK, distance as u16);
        let sent = self.responder.respond_message(request.datagram(), mad, records.bytes);
        if sent.is_err() {
            // The answer to the same request is under way, or too many are.
        }
    }

    fn class_port_info(&mut self, request: &Message) {
        let info = ClassPortInfo {
            base_version: 1,
            class_version: VERSION,
            resp_time_value: 18,
            ..ClassPortInfo::zeroed()
        };
        let mut bytes = [0; ClassPortInfo::LENGTH];
        info.emit(&mut bytes);
        self.plain(request, &bytes);
    }
}

/// Returns the header of an answer.
fn header(request: &Mad, status: MadStatus, attribute_offset: u16) -> Mad {
    let mut mad = *request;
    mad.answer(status);
    mad.set_sa(&SaHeader { sm_key: 0, attribute_offset, ..request.sa() });
    mad
}

/// Returns the records that a Get or GetTable selects.
fn read(request: &Message, subnet: &Subnet, known: Known<'_>) -> Result<Records, MadStatus> {
    let mad = request.mad();
    let query = Query { mask: mad.component_mask(), template: mad.data() };
    Ok(match mad.attribute_id() {
        AttributeId::NODE_RECORD => {
            Records::of::<NodeRecord>(records::node_records(subnet, &query))
        }
        AttributeId::PORT_INFO_RECORD => {
            Records::of::<PortInfoRecord>(records::port_info_records(subnet, &query))
        }
        AttributeId::SWITCH_INFO_RECORD => {
            Records::of::<SwitchInfoRecord>(records::switch_info_records(subnet, &query))
        }
        AttributeId::LINK_RECORD => {
            Records::of::<LinkRecord>(records::link_records(subnet, &query))
        }
        AttributeId::LINEAR_FORWARDING_RECORD => Records::of::<LinearForwardingRecord>(
            records::forwarding_records(subnet, known.tables, &query),
        ),
        AttributeId::SM_INFO_RECORD => {
            Records::of::<SmInfoRecord>(records::manager_records(subnet, &known.manager, &query))
        }
        AttributeId::GUID_INFO_RECORD => {
            Records::of::<GuidInfoRecord>(records::guid_info_records(subnet, &query))
        }
        AttributeId::P_KEY_TABLE_RECORD => {
            Records::of::<PKeyTableRecord>(records::p_key_records(subnet, &query))
        }
        AttributeId::SL_TO_VL_RECORD => {
            Records::of::<SlToVlRecord>(records::sl_to_vl_records(subnet, &query))
        }
        AttributeId::PATH_RECORD => {
            let wanted: PathRecord = mad.attribute().expect("the attribute was looked at");
            let one = mad.method() == Method::GET;
            let paths = path::path_records(subnet, query.mask, &wanted, one)?;
            Records::of::<PathRecord>(paths.iter().flat_map(Record::to_record).collect())
        }
        _ => return Err(MadStatus::BAD_METHOD_ATTRIBUTE),
    })
}

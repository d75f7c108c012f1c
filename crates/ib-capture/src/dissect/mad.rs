//! Dissects MADs of all classes.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use ib_types::Gid;
use ib_wire::layout::FieldInfo;
use ib_wire::mad::acm::{AcmMessage, AddressType};
use ib_wire::mad::rmpp::RmppFlags;
use ib_wire::mad::{Attribute, ClassPortInfo, MAD_LENGTH, Mad, MgmtClass, pm, sa, sm, vendor};

use super::fields::{Fields, Value, hex, words};
use super::layer::Layer;

/// A MAD of which at least the common header was captured.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    mad: Mad,
    is_whole: bool,
}

impl Datagram {
    /// Parses the payload of a packet; `None` if the common header is missing or its base version
    /// is not 1.
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        const HEADER: usize = 24;
        if payload.len() < HEADER || payload.len() > MAD_LENGTH {
            return None;
        }
        let mut mad = Mad::default();
        mad.0[..payload.len()].copy_from_slice(payload);
        let is_whole = payload.len() == MAD_LENGTH;
        (mad.base_version() == 1).then_some(Self { mad, is_whole })
    }

    /// Returns the MAD. Bytes that were not captured are zero.
    #[must_use]
    pub const fn mad(&self) -> &Mad {
        &self.mad
    }

    /// Returns the MAD if all of it was captured.
    #[must_use]
    pub fn whole(&self) -> Option<&Mad> {
        self.is_whole.then_some(&self.mad)
    }

    /// Returns the fields of the MAD.
    #[must_use]
    pub fn to_fields(&self) -> Fields {
        let mad = &self.mad;
        let (class, header, id) = (mad.class(), mad.header(), mad.attribute_id());
        let mut fields = Fields::new();
        fields.put("base_version", header.base_version);
        fields.put("class", class.0);
        fields.put("class_name", class.name());
        fields.put("class_version", header.class_version);
        fields.put("method", header.method.0);
        fields.put("method_name", header.method.name());
        fields.put("status", mad.status().0);
        fields.put("tid", header.transaction_id.0);
        fields.put("attribute_id", id.0);
        fields.put("attribute_name", id.name(class));
        fields.put("attribute_modifier", header.attribute_modifier);
        if self.is_whole {
            self.class_fields(&mut fields);
            if let Some(attribute) = self.attribute() {
                fields.group("attribute", attribute);
            }
        }
        fields
    }

    /// Adds the class-specific fields.
    fn class_fields(&self, fields: &mut Fields) {
        let (mad, class) = (&self.mad, self.mad.class());
        if class.is_smp() {
            fields.put("m_key", mad.m_key());
        }
        if class == MgmtClass::SUBN_DIRECTED_ROUTE {
            let hops = usize::from(mad.hop_count()).min(63);
            let path = |path: &[u8; 64]| -> Vec<Value> {
                path[1..=hops].iter().map(|&port| port.into()).collect()
            };
            fields.put("is_returning", mad.is_returning());
            fields.put("hop_pointer", mad.hop_pointer());
            fields.put("hop_count", mad.hop_count());
            fields.put("dr_slid", mad.dr_slid());
            fields.put("dr_dlid", mad.dr_dlid());
            fields.put("initial_path", path(mad.initial_path()));
            fields.put("return_path", path(mad.return_path()));
        }
        if class.may_use_rmpp() {
            let rmpp = mad.rmpp();
            if rmpp.flags.contains(RmppFlags::ACTIVE) {
                let mut group = Fields::new();
                group.text("type", rmpp.rmpp_type);
                group.text("flags", rmpp.flags);
                group.text("status", rmpp.status);
                group.put("segment", rmpp.segment);
                group.put("length_or_window", rmpp.length_or_window);
                fields.group("rmpp", group);
            }
        }
        if class == MgmtClass::SUBN_ADM {
            let sa = mad.sa();
            fields.put("sm_key", sa.sm_key);
            fields.put("attribute_offset", sa.attribute_offset);
            fields.put("component_mask", sa.component_mask.0);
        }
        if class.has_oui() {
            fields.put("oui", mad.oui().0);
        }
        if class == MgmtClass::PING && mad.method().is_response() {
            fields.text("host", words(vendor::ping_host(mad).as_bytes()));
        }
    }

    /// Returns the fields of the attribute; `None` if its layout is unknown, if all its bytes are
    /// zero, or if it starts in an earlier RMPP segment.
    fn attribute(&self) -> Option<Fields> {
        let (mad, class) = (&self.mad, self.mad.class());
        let (data, id) = (mad.data(), mad.attribute_id());
        let is_first = !class.may_use_rmpp()
            || !mad.rmpp().flags.contains(RmppFlags::ACTIVE)
            || mad.rmpp().segment == 1;
        if !is_first || data.iter().all(|&byte| byte == 0) {
            return None;
        }
        let mut fields = Fields::new();
        if class.is_smp() && id == sm::NodeDescription::ID {
            fields.text("description", words(data));
            return Some(fields);
        }
        let known = LAYOUTS.iter().find(|known| known.id == id.0 && (known.belongs_to)(class))?;
        fields.layout(known.fields, data, &[]);
        Some(fields)
    }
}

impl fmt::Display for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mad)
    }
}

/// The fields of an attribute's data.
struct AttributeLayout {
    id: u16,
    belongs_to: fn(MgmtClass) -> bool,
    fields: &'static [FieldInfo],
}

macro_rules! layouts {
    ($($kind:path),+ $(,)?) => {
        &[$(
            AttributeLayout {
                id: <$kind as Attribute>::ID.0,
                belongs_to: <$kind as Attribute>::belongs_to,
                fields: <$kind>::FIELDS,
            },
        )+]
    };
}

const LAYOUTS: &[AttributeLayout] = layouts!(
    ClassPortInfo,
    sm::NodeInfo,
    sm::SwitchInfo,
    sm::GuidInfo,
    sm::PortInfo,
    sm::PortInfoExtended,
    sm::MlnxExtPortInfo,
    sm::PKeyTable,
    sm::SlToVl,
    sm::VlArbitration,
    sm::LinearForwardingBlock,
    sm::MulticastForwardingBlock,
    sm::SmInfo,
    sm::Notice,
    sa::GuidInfoRecord,
    sa::InformInfo,
    sa::InformInfoRecord,
    sa::LinearForwardingRecord,
    sa::LinkRecord,
    sa::MCMemberRecord,
    sa::MulticastForwardingRecord,
    sa::MultiPathRecord,
    sa::NodeRecord,
    sa::PKeyTableRecord,
    sa::PathRecord,
    sa::PortInfoRecord,
    sa::SaNotice,
    sa::ServiceRecord,
    sa::SlToVlRecord,
    sa::SmInfoRecord,
    sa::SwitchInfoRecord,
    sa::TraceRecord,
    sa::VlArbitrationRecord,
    pm::PortCounters,
    pm::PortCountersExtended,
    pm::PortRcvErrorDetails,
    pm::PortXmitDiscardDetails,
    pm::PortSamplesControl,
    pm::PortSamplesResult,
    pm::PortExtSpeedsCounters,
    vendor::SourceRoute,
);

/// Returns the layer of an ACM message.
pub(super) fn acm_layer(message: &AcmMessage) -> Layer {
    let name = match message.method {
        method if method.is_response() => "answer",
        _ => "question",
    };
    let address = |kind: AddressType, bytes: &[u8; 64]| match kind {
        AddressType::NAME => words(bytes),
        AddressType::IPV4 => {
            Ipv4Addr::from(*bytes.first_chunk::<4>().expect("the field has 64 bytes")).to_string()
        }
        AddressType::IPV6 => {
            Ipv6Addr::from(*bytes.first_chunk::<16>().expect("the field has 64 bytes")).to_string()
        }
        AddressType::GID => {
            Gid::from_bytes(*bytes.first_chunk().expect("the field has 64 bytes")).to_string()
        }
        _ => hex(bytes),
    };
    let source = address(message.source_type, &message.source);
    let destination = address(message.destination_type, &message.destination);
    let mut layer = Layer::new("acm", name).about(format!("{source} for {destination}"));
    let fields = &mut layer.fields;
    fields.put("method", message.method.0);
    fields.put("status", message.status.0);
    fields.put("control", message.control);
    fields.put("tid", message.transaction_id.0);
    fields.text("destination_type", message.destination_type);
    fields.text("destination", destination);
    fields.text("source_type", message.source_type);
    fields.text("source", source);
    fields.put("responder_resources", message.responder_resources);
    fields.put("initiator_depth", message.initiator_depth);
    let gids: Vec<Value> =
        message.groups().iter().map(|gid| Value::Text(gid.to_string())).collect();
    fields.put("gids", gids);
    layer
}

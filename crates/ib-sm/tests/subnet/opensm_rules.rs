//! Special cases of SA requests. The expected responses are what OpenSM responds.

use std::time::Duration;

use ib_link::Remote;
use ib_mad::Message;
use ib_sim::{Options, Sim};
use ib_sm::SmConfig;
use ib_types::{Gid, PKey, QKey};
use ib_wire::mad::sa::{
    ComponentMask, JoinState, MCMemberRecord, PathRecord, PortInfoRecord, RateCode, Record,
    SaHeader, Selector, SmInfoRecord,
};
use ib_wire::mad::sm::{CapabilityMask, MtuCode, PortInfo, PortState};
use ib_wire::mad::{
    Attribute, AttributeId, ClassPortInfo, Mad, MadStatus, Method, MgmtClass, TransactionId,
};

use crate::lab::{Lab, SaClient};

/// A fabric whose SM is on host 0 and whose SA client is on host 1.
struct Client {
    lab: Lab,
    sa_client: SaClient,
}

impl Client {
    fn new(config: SmConfig) -> Self {
        let mut lab = Lab::new("torus 3x3 hosts=1");
        lab.add(0, config);
        lab.run_while(|lab| lab.sms[0].reports.is_empty());
        let sa_client = lab.sa_client(1);
        Self { lab, sa_client }
    }

    fn gid(&self, host: usize) -> Gid {
        Gid::new(Gid::DEFAULT_PREFIX, self.lab.sim.link_port(self.lab.host(host)).port_guid)
    }

    fn ask(&mut self, mad: Mad) -> Message {
        let manager = Remote::gsi(self.lab.lid(0));
        self.lab.ask(&mut self.sa_client, manager, mad)
    }

    /// Queries records by GetTable. Panics if the SA refuses the query.
    fn table<R: Record>(&mut self, mask: &[u8], template: &R) -> Vec<R> {
        let answer = self.ask(request(Method::GET_TABLE, mask, template));
        assert_eq!(answer.status(), MadStatus::OK);
        answer.records().collect()
    }

    /// Joins a group, or leaves it.
    fn change(
        &mut self,
        method: Method,
        mask: &[u8],
        wanted: &MCMemberRecord,
    ) -> Result<MCMemberRecord, MadStatus> {
        let answer = self.ask(request(method, mask, wanted));
        match answer.status() {
            MadStatus::OK => Ok(answer.mad().attribute().expect("the response holds a record")),
            status => Err(status),
        }
    }
}

fn request<R: Attribute>(method: Method, mask: &[u8], template: &R) -> Mad {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
    mad.set_attribute(template);
    mad.set_sa(&SaHeader { component_mask: ComponentMask::of(mask), ..mad.sa() });
    mad
}

#[test]
fn loopback_plug_carries_no_route() {
    let net = b"Switch 8 \"leaf\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n[5] \"leaf\"[5]\n\nHca 1 \"a\"\n\
                [1] \"leaf\"[1]\n\nHca 1 \"b\"\n[1] \"leaf\"[2]\n\n";
    let fabric = ib_topology::read("net", net).expect("the text is an ibsim net file");
    let leaf = fabric.find_name("leaf").expect("the fabric has the switch");
    let plug = fabric.port_id(leaf, 5).expect("the switch has port 5");
    assert_eq!(fabric.port(plug).peer, Some(plug));
    let mut lab = Lab::with(Sim::new(&fabric, Options::default()));
    lab.add(0, SmConfig::default());
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    assert_eq!(lab.sms[0].faults, []);
    assert_eq!(lab.sim.port_info(plug).port_state, PortState::ACTIVE);
    lab.check();
}

#[test]
fn act_count_of_sm_info_grows_with_each_light_sweep() {
    let mut client = Client::new(SmConfig::default());
    let mut count = || {
        client.lab.run_for(Duration::from_secs(11));
        let records = client.table(&[], &SmInfoRecord::zeroed());
        assert_eq!(records.len(), 1);
        records[0].sm_info.act_count
    };
    let counts = [count(), count(), count()];
    assert!(0 < counts[0] && counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");
}

#[test]
fn class_port_info_lists_only_supported_features() {
    let mut client = Client::new(SmConfig::default());
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(0));
    mad.set_attribute_id(AttributeId::CLASS_PORT_INFO);
    let answer = client.ask(mad);
    let data: &[u8; ClassPortInfo::LENGTH] =
        answer.mad().data().first_chunk().expect("the MAD has room for a ClassPortInfo");
    let info = ClassPortInfo::parse(data);
    // OpenSM 3.3.23 returns 0x2602 and 0xb5e8. This SA does not support Notice (0x2) and alias GUIDs (0x20), but
    // supports NDR (0x20000).
    assert_eq!((info.capability_mask, info.capability_mask2), (0x2600, 0x2_b5c8));
}

#[test]
fn capabilities_select_ports_exactly_or_at_least() {
    /// Component mask bit of `CapabilityMask`.
    const CAPABILITY_MASK: u8 = 7;
    let mut client = Client::new(SmConfig::default());
    let mut select = |capability_mask, modifier: u32| {
        let wanted = PortInfoRecord {
            port_info: PortInfo { capability_mask, ..PortInfo::zeroed() },
            ..PortInfoRecord::zeroed()
        };
        let mut mad = request(Method::GET_TABLE, &[CAPABILITY_MASK], &wanted);
        mad.set_attribute_modifier(modifier);
        let answer = client.ask(mad);
        assert_eq!(answer.status(), MadStatus::OK);
        answer
            .records::<PortInfoRecord>()
            .map(|it| it.port_info.capability_mask)
            .collect::<Vec<_>>()
    };
    let at_least = select(CapabilityMask::SM, 1 << 31);
    let [manager] = at_least[..] else { panic!("expected the port of the SM: {at_least:?}") };
    assert!(manager.contains(CapabilityMask::SM) && manager != CapabilityMask::SM);
    assert_eq!(select(CapabilityMask::SM, 0), [], "no port has exactly this capability");
    assert_eq!(select(manager, 0), [manager]);
    assert!(select(CapabilityMask(0), 1 << 31).len() > select(CapabilityMask(0), 0).len());
}

#[test]
fn p_key_selects_groups_without_its_membership_bit() {
    /// Component mask bit of the P_Key.
    const P_KEY: u8 = 7;
    let mut client = Client::new(SmConfig::default());
    for (key, expected) in [(0xffff, 1), (0x7fff, 1), (0x8001, 0)] {
        let wanted = MCMemberRecord { p_key: PKey(key), ..MCMemberRecord::zeroed() };
        assert_eq!(client.table(&[P_KEY], &wanted).len(), expected, "{key:#x}");
    }
}

#[test]
fn given_slid_is_paired_with_the_base_dlid_first() {
    const DGID: u8 = 2;
    const SGID: u8 = 3;
    const DLID: u8 = 4;
    const SLID: u8 = 5;
    const NUMB_PATH: u8 = 12;
    let mut config = SmConfig::default();
    config.routing.lids.lmc = ib_types::Lmc::new(2).expect("2 is an LMC");
    let mut client = Client::new(config);
    let (one, other) = (client.lab.lid(1), client.lab.lid(4));
    let (sgid, dgid) = (client.gid(1), client.gid(4));
    let mut paths = |more: &[u8], slid: u16, dlid: u16, numb_path| {
        let (slid, dlid) = (one + slid, other + dlid);
        let wanted = PathRecord { sgid, dgid, slid, dlid, numb_path, ..PathRecord::zeroed() };
        let mask = [&[DGID, SGID], more].concat();
        let offsets = |it: PathRecord| (it.slid - one, it.dlid - other, it.preference);
        client.table(&mask, &wanted).into_iter().map(offsets).collect::<Vec<_>>()
    };
    assert_eq!(paths(&[SLID], 1, 0, 0), [(1, 0, 0), (1, 1, 2), (1, 2, 2), (1, 3, 2)]);
    assert_eq!(paths(&[DLID], 0, 0, 0), [(0, 0, 0), (1, 0, 2), (2, 0, 2), (3, 0, 2)]);
    assert_eq!(paths(&[SLID, DLID], 1, 3, 0), [(1, 3, 0)]);
    let six = [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0), (0, 1, 2), (0, 2, 2)];
    assert_eq!(paths(&[NUMB_PATH], 0, 0, 6), six);
    assert_eq!(paths(&[], 0, 0, 0).len(), 16);
}

/// Component of a join request: description, component mask bits, function that sets its value, and status of OpenSM's
/// response.
type Component = (&'static str, &'static [u8], fn(&mut MCMemberRecord), MadStatus);

/// The MGID of the broadcast group of the default partition.
const BROADCAST: Gid = Gid(0xff12_401b_ffff_0000_0000_0000_ffff_ffff);

#[test]
fn components_of_a_join_count_as_in_opensm() {
    const OK: MadStatus = MadStatus::OK;
    const INVALID: MadStatus = MadStatus::SA_REQUEST_INVALID;
    let cases: &[Component] = &[
        ("MLID that differs from the assigned one", &[3], |it| it.mlid = 0xc001, OK),
        ("invalid MLID", &[3], |it| it.mlid = 5, OK),
        ("MTU without selector", &[5], |it| it.mtu = MtuCode(63), OK),
        ("rate without selector", &[9], |it| it.rate = RateCode(63), OK),
        ("selector without rate", &[8], |it| it.rate_selector = Selector::EXACTLY, INVALID),
        ("selector GREATER without rate", &[8], |it| it.rate_selector = Selector::GREATER, OK),
        (
            "another rate",
            &[8, 9],
            |it| {
                (it.rate_selector, it.rate) = (Selector::EXACTLY, RateCode(2));
            },
            INVALID,
        ),
        (
            "a lower rate",
            &[8, 9],
            |it| {
                (it.rate_selector, it.rate) = (Selector::GREATER, RateCode(2));
            },
            OK,
        ),
        (
            "another life time",
            &[10, 11],
            |it| {
                it.life_time_selector = Selector::EXACTLY;
                it.life_time.0 = 5;
            },
            OK,
        ),
        ("another scope", &[15], |it| it.scope = 5, OK),
        ("another hop limit", &[14], |it| it.hop_limit = 5, INVALID),
        ("the hop limit", &[14], |it| it.hop_limit = 0, OK),
        ("another Q_Key", &[2], |it| it.q_key = QKey(3), INVALID),
        ("a limited P_Key", &[7], |it| it.p_key = PKey(0x7fff), OK),
        ("another P_Key", &[7], |it| it.p_key = PKey(0x8001), INVALID),
    ];
    let mut client = Client::new(SmConfig::default());
    let own = MCMemberRecord {
        mgid: BROADCAST,
        port_gid: client.gid(1),
        join_state: JoinState::FULL_MEMBER,
        ..MCMemberRecord::zeroed()
    };
    let named = |more: &[u8]| [&[0, 1, 16], more].concat();
    for (what, mask, change, expected) in cases {
        let mut wanted = own;
        change(&mut wanted);
        let joined = client.change(Method::SET, &named(mask), &wanted);
        assert_eq!(joined.err().unwrap_or(OK), *expected, "{what}");
    }
    client.change(Method::DELETE, &named(&[]), &own).expect("the port is a member");
    let wanted = MCMemberRecord { proxy_join: true, ..own };
    let joined = client.change(Method::SET, &named(&[17]), &wanted).expect("the join is accepted");
    assert!(joined.proxy_join, "a port may allow others to change its membership by proxy");
}

#[test]
fn used_mlid_is_replaced_when_a_group_is_created() {
    let mut client = Client::new(SmConfig::default());
    for (number, (asked, granted)) in
        [(0xc005, 0xc005), (0xc000, 0xc001), (5, 0xc002)].into_iter().enumerate()
    {
        let wanted = MCMemberRecord {
            mgid: Gid((0xff12_0000 << 96) | (number as u128 + 0x77)),
            port_gid: client.gid(1),
            mlid: asked,
            p_key: PKey::DEFAULT,
            rate: RateCode(63),
            join_state: JoinState::FULL_MEMBER,
            ..MCMemberRecord::zeroed()
        };
        let created = client.change(Method::SET, &[0, 1, 2, 3, 6, 7, 9, 12, 13, 16], &wanted);
        assert_eq!(created.map(|group| group.mlid), Ok(granted), "{asked:#x}");
    }
}

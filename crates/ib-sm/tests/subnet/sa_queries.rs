//! SA queries of clients: paths, and which ports and groups are visible to a client.

use ib_link::{Datagram, Incoming, Remote};
use ib_sm::{Partitions, QosConfig, SmConfig};
use ib_types::PKey;
use ib_wire::mad::sa::{
    ComponentMask, GuidInfoRecord, LinkRecord, MCMemberRecord, NodeRecord, PKeyTableRecord,
    PathRecord, PortInfoRecord, RateCode, Record, SaHeader, Selector, SlToVlRecord,
};
use ib_wire::mad::sm::MtuCode;
use ib_wire::mad::{Attribute, Mad, MadStatus, Method, MgmtClass, TransactionId};

use crate::lab::Lab;

/// The `SA_Key` that makes clients trusted.
const KEY: u64 = 1;

fn up(kind: &str, config: SmConfig) -> Lab {
    let mut lab = Lab::new(kind);
    lab.add(0, config);
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab
}

fn request<R: Attribute>(method: Method, (key, mask): (u64, &[u8]), template: &R) -> Mad {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
    mad.set_attribute(template);
    let component_mask = ComponentMask::of(mask);
    mad.set_sa(&SaHeader { sm_key: key, component_mask, ..mad.sa() });
    mad
}

/// Sends a query from a host. Returns the response if it is a single MAD and the SA sends it at once.
fn query(lab: &mut Lab, host: usize, mad: Mad) -> Option<Mad> {
    let (now, remote) = (lab.sim.now(), Remote::gsi(lab.lid(host)));
    let manager = &mut lab.sms[0].manager;
    manager.handle(now, &Incoming::Received(Datagram::new(remote, mad)));
    let mut answers = std::iter::from_fn(|| manager.poll_transmit(now));
    answers.find(|it| it.mad.class() == MgmtClass::SUBN_ADM).map(|answer| answer.mad)
}

/// Returns all records that a table query from a host gets.
fn all<R: Record>(lab: &mut Lab, host: usize, key: u64, template: &R) -> Vec<R> {
    let mut sa_client = lab.sa_client(host);
    let manager = lab.lid(0);
    let mad = request(Method::GET_TABLE, (key, &[]), template);
    let answer = lab.ask(&mut sa_client, Remote::gsi(manager), mad);
    assert_eq!(answer.status(), MadStatus::OK);
    answer.records::<R>().collect()
}

/// Returns the path that a query gets, or the status of the response.
fn path(
    lab: &mut Lab,
    host: usize,
    mask: &[u8],
    wanted: &PathRecord,
) -> Result<PathRecord, MadStatus> {
    let answer =
        query(lab, host, request(Method::GET, (0, mask), wanted)).expect("the SA responds");
    match answer.status() {
        MadStatus::OK => Ok(answer.attribute().expect("the response holds a path")),
        status => Err(status),
    }
}

fn between(lab: &Lab, from: usize, to: usize) -> PathRecord {
    PathRecord { slid: lab.lid(from), dlid: lab.lid(to), ..PathRecord::zeroed() }
}

/// Component mask bits of PathRecord.
const DLID: u8 = 4;
const SLID: u8 = 5;
const P_KEY: u8 = 13;
const SL: u8 = 15;

/// Returns partitions: host 0 runs the SM, hosts 1 and 2 are in the partition `storage`, and all other hosts are only
/// in the default partition.
fn partitioned(lab: &Lab) -> Partitions {
    let guid = |host| lab.sim.link_port(lab.host(host)).port_guid;
    let text = format!(
        "Default=0x7fff : ALL=limited, SELF=full ;\nstorage=0x10 : {}=full, {}=limited ;\n",
        guid(1),
        guid(2)
    );
    Partitions::read("test", text.as_bytes()).expect("the partitions are valid")
}

fn with_partitions(kind: &str) -> Lab {
    let mut lab = Lab::new(kind);
    let partitions = partitioned(&lab);
    lab.add(0, SmConfig { partitions, ..SmConfig::default() });
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab
}

#[test]
fn path_value_needs_a_selector_and_a_defined_code() {
    let mut lab = up("torus 3x3 hosts=1", SmConfig::default());
    let plain = between(&lab, 1, 4);
    let ends = |more: &[u8]| [&[DLID, SLID], more].concat();
    let best = path(&mut lab, 1, &ends(&[]), &plain).unwrap();
    let mtu = |code| PathRecord { mtu_selector: Selector::EXACTLY, mtu: MtuCode(code), ..plain };
    let (named, alone) = (ends(&[16, 17]), ends(&[17]));
    assert_eq!(path(&mut lab, 1, &named, &mtu(1)).unwrap().mtu, MtuCode::MTU_256);
    assert_eq!(
        path(&mut lab, 1, &alone, &mtu(1)).unwrap().mtu,
        best.mtu,
        "an MTU without its selector is ignored"
    );
    assert_eq!(path(&mut lab, 1, &named, &mtu(5)), Err(MadStatus::SA_NO_RECORDS));
    for code in [0, 6, 9, 63] {
        assert_eq!(path(&mut lab, 1, &named, &mtu(code)), Err(MadStatus::SA_REQUEST_INVALID));
    }
    for code in [0, 1, 60] {
        let rate = RateCode(code);
        let wanted = PathRecord { rate_selector: Selector(3), rate, ..plain };
        let answer = path(&mut lab, 1, &ends(&[18, 19]), &wanted);
        assert_eq!(
            answer,
            Err(MadStatus::SA_REQUEST_INVALID),
            "an undefined value selects no path"
        );
    }
}

#[test]
fn get_returns_one_of_many_paths() {
    let mut lab = up("torus 3x3 hosts=1", SmConfig::default());
    let wanted = between(&lab, 1, 4);
    assert!(path(&mut lab, 1, &[], &wanted).is_ok(), "OpenSM returns a path for an empty mask");
    assert_eq!(path(&mut lab, 1, &[SLID], &wanted).unwrap().slid, wanted.slid);
    assert_eq!(path(&mut lab, 1, &[DLID], &wanted).unwrap().dlid, wanted.dlid);
}

#[test]
fn ports_are_visible_in_common_partitions() {
    let mut lab = with_partitions("torus 3x3 hosts=1");
    let lids = |lab: &Lab, hosts: &[usize]| {
        let mut lids: Vec<u16> = hosts.iter().map(|&host| lab.lid(host)).collect();
        lids.sort_unstable();
        lids
    };
    let nodes = |lab: &mut Lab, host, key| {
        let records = all(lab, host, key, &NodeRecord::zeroed());
        let mut lids: Vec<u16> = records.into_iter().map(|record| record.lid).collect();
        lids.sort_unstable();
        lids
    };
    assert_eq!(nodes(&mut lab, 1, 0), lids(&lab, &[0, 1, 2]));
    assert_eq!(nodes(&mut lab, 3, 0), lids(&lab, &[0, 3]), "limited members do not see each other");
    assert_eq!(nodes(&mut lab, 0, 0).len(), 18, "the SM is a full member");
    assert_eq!(nodes(&mut lab, 3, KEY).len(), 18, "the SA_Key makes all ports visible");
    let guids = all(&mut lab, 1, 0, &GuidInfoRecord::zeroed());
    assert!(guids.iter().all(|record| lids(&lab, &[0, 1, 2]).contains(&record.lid)));
    // The SA hides port 0 of each switch, and the switch ports to hosts of other partitions.
    let leaf = |lab: &Lab, host| {
        let port = lab.sim.peer(lab.host(host)).expect("the host is linked");
        let (switch, number) = lab.sim.place(port);
        (lab.sim.port_info(lab.sim.find_port(switch, 0).expect("a switch has port 0")).lid, number)
    };
    let (own, other) = (leaf(&lab, 1), leaf(&lab, 3));
    let ports = all(&mut lab, 1, 0, &PortInfoRecord::zeroed());
    let ports: Vec<(u16, u8)> = ports.iter().map(|record| (record.lid, record.port)).collect();
    assert!(ports.contains(&own) && !ports.contains(&(own.0, 0)), "{ports:?}");
    assert!(!ports.contains(&other), "{ports:?}");
    assert!(
        ports.contains(&(other.0, 1 + other.1 % 2)),
        "links between switches belong to no partition"
    );
    let links = all(&mut lab, 1, 0, &LinkRecord::zeroed());
    let has = |links: &[LinkRecord], (lid, port)| {
        let from = |link: &&LinkRecord| (link.from_lid, link.from_port) == (lid, port);
        links.iter().any(|link| from(&link))
    };
    assert!(has(&links, own) && !has(&links, other));
    let links = all(&mut lab, 1, KEY, &LinkRecord::zeroed());
    assert!(has(&links, other));
    let keys = request(Method::GET, (0, &[0]), &PKeyTableRecord::zeroed());
    let refused = query(&mut lab, 1, keys).expect("the SA responds");
    assert_eq!(refused.status(), MadStatus::SA_REQUEST_INVALID);
    assert!(!all(&mut lab, 1, KEY, &PKeyTableRecord::zeroed()).is_empty());
}

/// Partition `storage` has a broadcast group. Host 1 is a full member, host 2 is a limited member, and host 3 is not a
/// member.
#[test]
fn groups_are_visible_in_their_own_partitions_only() {
    let mut lab = Lab::new("torus 3x3 hosts=1");
    let guid = |host| lab.sim.link_port(lab.host(host)).port_guid;
    let text = format!(
        "Default=0x7fff : ALL=limited, SELF=full ;\nstorage=0x10, ipoib : {}=full, {}=limited ;\n",
        guid(1),
        guid(2)
    );
    let partitions = Partitions::read("test", text.as_bytes()).expect("the partitions are valid");
    lab.add(0, SmConfig { partitions, ..SmConfig::default() });
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let mut groups = |host, key| {
        let records = all(&mut lab, host, key, &MCMemberRecord::zeroed());
        records.iter().filter(|record| record.p_key.partition() == 0x10).count()
    };
    assert_eq!((groups(1, 0), groups(2, 0), groups(3, 0)), (1, 1, 0));
}

#[test]
fn paths_are_visible_in_common_partitions() {
    let mut lab = with_partitions("torus 3x3 hosts=1");
    let key = |lab: &mut Lab, sa_client, from, to| {
        let wanted = between(lab, from, to);
        path(lab, sa_client, &[DLID, SLID], &wanted).map(|path| path.p_key)
    };
    assert_eq!(key(&mut lab, 1, 1, 2), Ok(PKey(0x8010)));
    assert_eq!(key(&mut lab, 1, 2, 1), Ok(PKey(0x0010)));
    assert_eq!(key(&mut lab, 3, 3, 0), Ok(PKey(0x7fff)));
    let none = Err(MadStatus::SA_NO_RECORDS);
    assert_eq!(key(&mut lab, 3, 1, 2), none, "hosts 1 and 2 are in another partition");
    assert_eq!(key(&mut lab, 3, 1, 0), none, "the requester is not in the path's partition");
    assert_eq!(key(&mut lab, 3, 3, 3), none, "a limited member cannot communicate with itself");
    assert_eq!(key(&mut lab, 0, 1, 0), Ok(PKey(0x7fff)));
    let paths = all(&mut lab, 3, 0, &PathRecord::zeroed());
    assert_eq!(paths.len(), 3, "paths to the SM, from the SM, and from the SM to itself");
    assert!(all(&mut lab, 3, KEY, &PathRecord::zeroed()).len() > 3);
}

#[test]
fn path_has_the_service_level_of_its_partition() {
    let text = "Default=0x7fff : ALL=full ;\nfast=0x10,sl=3 : ALL=full ;\n";
    let partitions = Partitions::read("test", text.as_bytes()).expect("the partitions are valid");
    for (qos, own) in [(None, 0), (Some(QosConfig::default()), 3)] {
        let partitions = partitions.clone();
        let mut lab = up("torus 3x3 hosts=1", SmConfig { partitions, qos, ..SmConfig::default() });
        let plain = between(&lab, 1, 4);
        let record = path(&mut lab, 1, &[DLID, SLID], &plain).unwrap();
        assert_eq!((record.p_key, record.sl), (PKey(0x8010), own), "the lowest P_Key is used");
        let default = PathRecord { p_key: PKey::DEFAULT, ..plain };
        let record = path(&mut lab, 1, &[DLID, SLID, P_KEY], &default).unwrap();
        assert_eq!((record.p_key, record.sl), (PKey::DEFAULT, 0));
        let asked = PathRecord { p_key: PKey(0x8010), sl: 5, ..plain };
        assert_eq!(path(&mut lab, 1, &[DLID, SLID, P_KEY, SL], &asked).unwrap().sl, 5);
    }
}

#[test]
fn requests_with_the_sa_key_are_trusted() {
    let config = SmConfig { sm_key: 0x1111, sa_key: 0x2222, ..SmConfig::default() };
    let mut lab = up("torus 3x3 hosts=1", config);
    let lid = lab.lid(1);
    let wanted = PKeyTableRecord { lid, ..PKeyTableRecord::zeroed() };
    let mut ask = |key| query(&mut lab, 1, request(Method::GET, (key, &[0, 1]), &wanted));
    assert_eq!(ask(0x2222).map(|answer| answer.status()), Some(MadStatus::OK));
    assert_eq!(ask(0).map(|answer| answer.status()), Some(MadStatus::SA_REQUEST_INVALID));
    assert_eq!(ask(0x1111), None, "the SM_Key is not the SA_Key");
    assert_eq!(ask(1), None);
}

#[test]
fn large_table_does_not_delay_other_requests() {
    let mut lab = up("torus 6x6x6 hosts=1", SmConfig::default());
    let everything = request(Method::GET_TABLE, (0, &[]), &SlToVlRecord::zeroed());
    assert_eq!(query(&mut lab, 1, everything), None, "the search takes several time slices");
    // The SA serves a small request between the time slices of the large request.
    let wanted = between(&lab, 1, 4);
    assert!(path(&mut lab, 2, &[DLID, SLID], &wanted).is_ok());
    let records = all(&mut lab, 1, 0, &SlToVlRecord::zeroed());
    // Each of 216 hosts has one SL-to-VL table. Each of 216 switches has one for each ingress and egress port (0 to 7).
    assert_eq!(records.len(), 216 + 216 * 8 * 8);
}

#[test]
fn responses_are_limited_to_sa_max_bytes() {
    const MOST: usize = 5 << 19;
    let config = SmConfig { sa_max_bytes: MOST, ..SmConfig::default() };
    let mut lab = up("torus 4x4x4 hosts=1", config);
    let (now, remote) = (lab.sim.now(), Remote::gsi(lab.lid(1)));
    let manager = &mut lab.sms[0].manager;
    for number in 0..200 {
        let mut mad = request(Method::GET_TABLE, (0, &[]), &PathRecord::zeroed());
        mad.set_transaction_id(TransactionId(number));
        manager.handle(now, &Incoming::Received(Datagram::new(remote, mad)));
    }
    // 128 ports have 16,384 paths of 64 bytes. Two such responses fit into the limit, and the client does not
    // acknowledge them.
    let (mut refused, mut begun) = (0, std::collections::BTreeSet::new());
    while manager.poll_timeout() == Some(ib_types::Instant::ZERO) {
        manager.handle_timeout(now);
        while let Some(answer) = manager.poll_transmit(now) {
            match answer.mad.status() {
                MadStatus::SA_NO_RESOURCES => refused += 1,
                status => {
                    assert_eq!(status, MadStatus::OK);
                    begun.insert(answer.mad.transaction_id());
                }
            }
        }
    }
    assert_eq!(refused + begun.len(), 200, "every request gets a response");
    assert!((1..=2).contains(&begun.len()), "{begun:?}");
    let wanted = between(&lab, 1, 4);
    assert!(path(&mut lab, 2, &[DLID, SLID], &wanted).is_ok());
    let small = request(
        Method::GET_TABLE,
        (0, &[0]),
        &NodeRecord { lid: lab.lid(3), ..NodeRecord::zeroed() },
    );
    assert_eq!(query(&mut lab, 2, small).map(|answer| answer.status()), Some(MadStatus::OK));
}

use super::*;

fn read(text: &str) -> Result<Partitions, String> {
    Partitions::read("partitions.conf", text.as_bytes()).map_err(|error| error.to_string())
}

/// Returns the P_Keys of a CA port other than the SM's port.
fn keys(partitions: &Partitions, guid: u64) -> Vec<u16> {
    keys_of(partitions, guid, ADAPTER, false)
}

fn keys_of(partitions: &Partitions, guid: u64, kind: NodeKind, manager: bool) -> Vec<u16> {
    partitions.keys(Guid(guid), kind, manager).into_iter().map(|key| key.0).collect()
}

/// Returns each group as `MGID P_Key mtu rate sl`.
fn groups(partitions: &Partitions) -> Vec<String> {
    let show =
        |key: u16, it: &Group| format!("{} {key:#x} {} {} {}", it.mgid, it.mtu.0, it.rate.0, it.sl);
    let of = |it: &Partition| it.groups.iter().map(|group| show(it.key, group)).collect::<Vec<_>>();
    partitions.all().iter().flat_map(of).collect()
}

fn warnings(partitions: &Partitions) -> Vec<String> {
    partitions.warnings().iter().map(ToString::to_string).collect()
}

const ADAPTER: NodeKind = NodeKind::ChannelAdapter;

#[test]
fn default_partition_has_all_ports_as_full_members() {
    assert_eq!(Partitions::default().keys(Guid(1), ADAPTER, false), [PKey::DEFAULT]);
    let empty = read("# nothing\n\n").unwrap();
    assert_eq!(keys(&empty, 1), [0xffff]);
    assert_eq!(warnings(&empty).len(), 1);
    assert_eq!(groups(&empty), ["ff12:401b:ffff::ffff:ffff 0x7fff 4 3 0"]);
}

#[test]
fn file_lists_members_of_partitions() {
    let partitions = read(
        "# who may talk to whom\n\
         Default=0x7fff, ipoib, mtu=5 : ALL=limited, SELF=full ;\n\
         storage=0x8010, sl=3, defmember=full : 0x11,\n  0x12=limited, 0x13=both;\n\
         spare : ALL_SWITCHES ;\n",
    )
    .unwrap();
    assert_eq!(keys(&partitions, 0x10), [0x7fff]);
    assert_eq!(keys_of(&partitions, 0x10, ADAPTER, true), [0xffff]);
    assert_eq!(keys(&partitions, 0x11), [0x7fff, 0x8010]);
    assert_eq!(keys(&partitions, 0x12), [0x7fff, 0x0010]);
    assert_eq!(keys(&partitions, 0x13), [0x7fff, 0x0010, 0x8010]);
    assert_eq!(keys_of(&partitions, 0x20, NodeKind::Switch, false), [0x7fff, 0x0001]);
    assert_eq!(groups(&partitions), ["ff12:401b:ffff::ffff:ffff 0x7fff 5 3 0"]);
    assert_eq!(warnings(&partitions), [""; 0]);
}

#[test]
fn definitions_with_the_same_key_are_one_partition() {
    let partitions = read(
        "Default=0x7fff : ALL ; Default=0x7fff,ipoib : 0x11=full; Default : 0x12=full;\n\
         YetAnotherOne=0x300:0x11=full; YetAnotherOne=0x8300:0x12=limited;\n\
         YetAnotherOne:0x13=full;",
    )
    .unwrap();
    assert_eq!(partitions.all().len(), 2);
    assert_eq!(keys(&partitions, 0x10), [0x7fff]);
    assert_eq!(keys(&partitions, 0x11), [0xffff, 0x8300]);
    assert_eq!(keys(&partitions, 0x12), [0xffff, 0x0300]);
    assert_eq!(keys(&partitions, 0x13), [0x7fff, 0x8300]);
}

#[test]
fn partition_without_key_gets_a_free_one() {
    let partitions = read(
        "x=1:0x11;a:0x11;b=0:0x11;a:0x11=full;:0x11;c:0x11;=0x20:0x11;\n\
         NewPartition , ipoib : 0x123456=full, 0x3456789034=limi, 0x2134af2306 ;",
    )
    .unwrap();
    assert_eq!(keys(&partitions, 0x11), [0x7fff, 1, 0x8002, 3, 5, 0x20]);
    assert_eq!(keys(&partitions, 0x12_3456), [0x7fff, 0x8006]);
    assert_eq!(keys(&partitions, 0x34_5678_9034), [0x7fff, 6]);
    assert_eq!(keys(&partitions, 0x21_34af_2306), [0x7fff, 6]);
    assert_eq!(
        warnings(&partitions).len(),
        1,
        "only the definition without name and P_Key causes a warning"
    );
}

#[test]
fn lowest_indx0_key_is_at_index_0() {
    let partitions = read("Default:ALL=full;p=0x10,indx0:ALL;q=5,indx0:0x11;r=4:ALL;").unwrap();
    let first = |guid| partitions.first_key(&partitions.keys(Guid(guid), ADAPTER, false));
    assert_eq!(first(0x11), Some(PKey(5)));
    assert_eq!(first(0x12), Some(PKey(0x10)));
    assert_eq!(keys(&partitions, 0x12), [4, 0x10, 0xffff]);
}

#[test]
fn group_flags_follow_the_manual() {
    let partitions = read(
        "Default=0x7fff,ipoib:\n\
         \tmgid=ff12:401b::0707,sl=1 # random IPv4 group\n\
         \tmgid=ff12:601b::16    # MLDv2-capable routers\n\
         \tmgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2 # random group\n\
         \tALL=full;\n\
         p=0x10,ipoib,mtu=2,rate=2,sl=4:ALL\n\
         mgid=ff12:401b:8010::2,mtu=2\n\
         mgid=ff1e::3,scope=5,scope=3;",
    )
    .unwrap();
    assert_eq!(
        groups(&partitions),
        [
            "ff12:401b:ffff::ffff:ffff 0x7fff 4 3 0",
            "ff12:401b:ffff::707 0x7fff 4 3 1",
            "ff12:601b:ffff::16 0x7fff 4 3 0",
            "ff12::1 0x7fff 2 3 1",
            "ff12:401b:8010::ffff:ffff 0x10 2 2 4",
            "ff12:401b:8010::2 0x10 2 2 4",
            "ff13::3 0x10 2 2 4",
            "ff15::3 0x10 2 2 4",
        ]
    );
    let own: Vec<_> = partitions.all()[0].groups.iter().map(|it| it.sl_of_partition).collect();
    assert_eq!(own, [true, false, true, false]);
    assert_eq!(partitions.all()[0].groups[3].q_key, 0xdead_beef);
    assert_eq!(keys(&partitions, 1), [0xffff, 0x10]);
    assert_eq!(warnings(&partitions), [""; 0]);
}

#[test]
fn invalid_values_are_ignored_with_a_warning() {
    let flags = "one of ipoib, indx0, defmember, rate, mtu, sl, scope, Q_Key, TClass, FlowLabel";
    let unknown = format!("1:6: found `fast`, expected {flags}; it is ignored");
    for (text, message) in [
        ("a=1, fast : ALL;", unknown.as_str()),
        ("a=1,sl=17:;", "1:8: found `17`, expected 0 to 15; it is ignored"),
        ("a=1,mtu:;", "1:5: found `mtu`, expected `=` and a number behind it; it is ignored"),
        ("a=1,sl=3x:;", "1:8: found `3x`, expected a number; 3 is used"),
        ("a=1,defmember=x:;", "1:15: found `x`, expected full, limited or both; it is ignored"),
        (
            "a=1 :\n ALL=some;",
            "2:6: found `some`, expected full, limited or both; the member is limited",
        ),
        (
            "a=1:mgid=fe80::1;",
            "1:10: found `fe80::1`, expected a multicast GID; the group is not created",
        ),
        (
            "a=1,ipoib:mgid=ff12:401b:9::1;",
            "1:16: found `ff12:401b:9::1`, expected P_Key 0x8001 or 0 in the MGID; the group is not created",
        ),
        (
            "a=1,ipoib:mgid=ff12:401b::1,mtu=5;",
            "1:16: found `ff12:401b::1`, expected a broadcast group of the same scope, MTU and rate; the group is not created",
        ),
        (
            "a=1,ipoib,mtu=9:;",
            "1:1: found `a=1,ipoib,mtu=9`, expected an MTU code, 1 to 5; the group is not created",
        ),
    ] {
        let partitions = read(text).unwrap();
        assert_eq!(warnings(&partitions), [format!("partitions.conf:{message}")], "{text}");
    }
}

#[test]
fn syntax_errors_have_line_and_column() {
    let head = "the name of a partition, flags and `:` on one line";
    let member = "a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or mgid=GID";
    for (text, at, expected) in [
        ("Default=0x7fff", "1:1: found `Default=0x7fff`", head),
        ("a=1:ALL;\nb=2\n : ALL;", "2:1: found `b=2`", head),
        ("a=1; b=2:ALL;", "1:1: found `a=1`", "flags and `:` before `;`"),
        ("a=0x10 : 0x1 0x2;", "1:10: found `0x1 0x2`", member),
        ("a=0x10z: ALL;", "1:3: found `0x10z`", "a P_Key, 0x1 to 0x7fff"),
        ("a=,ipoib: ALL;", "1:3: found nothing", "a P_Key, 0x1 to 0x7fff"),
        ("a=1 :\n ALL, host1;", "2:7: found `host1`", member),
        ("a=1 : defmember=full : 0x1;", "1:7: found `defmember`", member),
    ] {
        let expected = format!("partitions.conf:{at}, expected {expected}");
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
}

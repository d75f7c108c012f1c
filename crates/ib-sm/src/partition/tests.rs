use super::*;

fn read(text: &str) -> Result<Partitions, String> {
    Partitions::read("partitions.conf", text.as_bytes()).map_err(|error| error.to_string())
}

const ADAPTER: NodeKind = NodeKind::ChannelAdapter;

#[test]
fn without_a_file_all_are_full_members_of_the_default_partition() {
    assert_eq!(Partitions::default().keys(Guid(1), ADAPTER, false), [PKey::DEFAULT]);
}

#[test]
fn a_file_says_who_is_in_what() {
    let partitions = read(
        "# who may talk to whom\n\
         Default=0x7fff, ipoib, mtu=5 : ALL=limited, SELF=full ;\n\
         storage=0x8010, sl=3, defmember=full : 0x11,\n  0x12=limited, 0x13=both;\n\
         spare : ALL_SWITCHES ;\n",
    )
    .unwrap();
    let keys = |guid, kind, manager| {
        let keys = partitions.keys(Guid(guid), kind, manager);
        keys.into_iter().map(|key| key.0).collect::<Vec<u16>>()
    };
    assert_eq!(keys(0x10, ADAPTER, false), [0x7fff]);
    assert_eq!(keys(0x10, ADAPTER, true), [0xffff]);
    assert_eq!(keys(0x11, ADAPTER, false), [0x7fff, 0x8010]);
    assert_eq!(keys(0x12, ADAPTER, false), [0x7fff, 0x0010]);
    assert_eq!(keys(0x13, ADAPTER, false), [0x7fff, 0x8010, 0x0010]);
    assert_eq!(keys(0x20, NodeKind::Switch, false), [0x7fff, 0x0001]);
    let default = &partitions.all()[0];
    assert_eq!(default.ipoib.map(|group| group.mtu), Some(MtuCode::MTU_4096));
    assert_eq!(partitions.all()[1].sl, 3);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, message) in [
        (
            "Default=0x7fff",
            "1:1: found the end of the file, expected `,` and a flag, `:` and members, or `;`",
        ),
        ("a=0x10 : 0x1 0x2;", "1:14: found `0x2`, expected `,` and another member, or `;`"),
        ("a=0 : ALL;", "1:3: found `0`, expected a P_Key, 0x1 to 0x7fff"),
        (
            "a=0x10:;\nb=0x8010:;",
            "2:3: found `0x8010`, expected a P_Key that no other partition has",
        ),
        ("a=1, mtu=9 : ALL;", "1:10: found `9`, expected an MTU code, 0x1 to 0x5"),
        (
            "a=1, fast : ALL;",
            "1:6: found `fast`, expected one of ipoib, indx0, rate, mtu, sl, scope, Q_Key, TClass, FlowLabel, defmember",
        ),
        ("a=1 : ALL=some;", "1:11: found `some`, expected full, limited or both"),
        (
            "a=1 : host1;",
            "1:7: found `host1`, expected a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF",
        ),
        (": ALL;", "1:1: found `:`, expected the name of a partition"),
    ] {
        assert_eq!(read(text).unwrap_err(), format!("partitions.conf:{message}"), "{text}");
    }
}

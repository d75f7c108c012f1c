use ib_types::Guid;

use super::*;

fn at(description: &str, port: u8) -> PortName {
    let description = description.to_owned();
    PortName { description, node_guid: Guid(7), port: Some(port), ..PortName::default() }
}

#[test]
fn removed_port_is_logged_with_its_name() {
    let mut change = PortChange {
        guid: Guid(8),
        lids: (4, 5),
        at: at("host", 1),
        is_new: false,
        is_first: false,
    };
    let expected = "Removed port with GUID:0x0000000000000008 LID range [4,5] of node: host \
                    (0x0000000000000007) port 1";
    assert_eq!(port(&change), (INFO, expected.to_owned()));
    (change.is_new, change.is_first) = (true, true);
    let (level, text) = port(&change);
    assert_eq!(level, VERBOSE);
    assert!(text.starts_with("Discovered new port with GUID:"), "{text}");
}

#[test]
fn link_is_logged_with_both_ends() {
    let change = LinkChange { ends: (at("one", 1), at("other", 2)), is_new: true };
    let (_, text) = link(&change);
    assert_eq!(
        text,
        "Discovered new link between one (0x0000000000000007) port 1 and other \
         (0x0000000000000007) port 2"
    );
}

#[test]
fn traps_are_logged_with_number_and_name() {
    let mut notice = Notice::zeroed();
    notice.is_generic = true;
    notice.notice_type.0 = 1;
    (notice.producer, notice.trap, notice.issuer_lid) = (2, TrapNumber::LINK_STATE_CHANGE, 6);
    let (level, text) = trap(&notice);
    assert_eq!(level, INFO);
    assert!(text.starts_with("Received Generic Notice type:1 num:128 ("), "{text}");
    assert!(text.ends_with(") Producer:2 (switch) from LID:6"), "{text}");
    notice.trap = TrapNumber(257);
    assert_eq!(trap(&notice).0, VERBOSE);
    notice.is_generic = false;
    assert!(trap(&notice).1.starts_with("Received Vendor Notice"), "{}", trap(&notice).1);
}

use crate::sim::Sim;
use ib_link::Remote;
use ib_wire::mad::{MgmtClass, TransactionId};

use super::*;
use crate::lab::{self, lid};
use crate::options::Options;

#[test]
fn congestion_control_responses_are_those_of_ibsim() {
    const OK: u16 = 0;
    const BAD_METHOD_ATTRIBUTE: u16 = 0x0c;
    const BAD_FIELD: u16 = 0x1c;
    let mut sim = lab::ready(&lab::row(1), Options::default());
    let client = lab::client(&mut sim, "h1");
    let both = |status| (status, status);
    for (method, id, (of_adapter, of_switch)) in [
        (Method::GET, 0x11, both(OK)),
        (Method::GET, 0x12, (BAD_METHOD_ATTRIBUTE, OK)),
        (Method::GET, 0x14, both(OK)),
        (Method::GET, 0x15, both(OK)),
        (Method::GET, 0x16, both(OK)),
        (Method::GET, 0x17, both(OK)),
        (Method::GET, 0x18, both(BAD_FIELD)),
        (Method::SET, 0x14, both(BAD_METHOD_ATTRIBUTE)),
    ] {
        for (name, expected) in [("h2", of_adapter), ("s1", of_switch)] {
            let mut mad = Mad::new(MgmtClass::CONGESTION_CONTROL, method, TransactionId(9));
            mad.set_attribute_id(AttributeId(id));
            mad.0[64..].fill(0xaa);
            let remote = Remote::gsi(lid(&sim, name));
            let answer = lab::answer(&mut sim, client, remote, mad);
            assert_eq!(answer.status().0, expected, "{name}: {id:#x}");
            assert_eq!(answer.0[24..], mad.0[24..], "{name}: {id:#x}");
        }
    }
}

#[test]
fn enabled_widths_are_those_of_the_net_file() {
    let net = b"Switch 4 \"s\"\n[1] \"a\"[1]\n[2] \"b\"[1] w=3\n\nHca 1 \"a\"\n[1] \"s\"[1]\n\n\
                Hca 1 \"b\"\n[1] \"s\"[2] w=2\n\n";
    let fabric = ib_topology::read("net", net).expect("the net file is valid");
    let mut sim = Sim::new(&fabric, Options::default());
    let enabled = |sim: &Sim, name| sim.port_info(lab::port(sim, name)).link_width_enabled.0;
    // With ibsim, smpquery shows the same LinkWidthEnabled values for this net file.
    let expected = [("s.1", 2), ("s.2", 3), ("a.1", 2), ("b.1", 2)];
    assert_eq!(expected.map(|(name, _)| (name, enabled(&sim, name))), expected);
    lab::run(&mut sim, "Clear \"s\"[2]");
    assert_eq!(enabled(&sim, "s.2"), 3);
}

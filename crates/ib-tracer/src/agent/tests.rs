use ib_link::Remote;
use ib_wire::mad::TransactionId;
use ib_wire::mad::vendor::{ping, ping_host};

use super::*;

fn agent() -> TracerAgent {
    TracerAgent::new("node1.example")
}

/// Returns the response to a request that arrived at `port`.
fn ask(agent: &mut TracerAgent, port: Option<u8>, mad: Mad) -> Option<Mad> {
    let datagram = Datagram::new(Remote::gsi(7), mad);
    agent.handle(Instant::ZERO, Arrival { port, lid: 3 }, &datagram);
    let answer = agent.poll_transmit(Instant::ZERO)?;
    assert_eq!(answer.remote, datagram.remote);
    assert_eq!(agent.poll_transmit(Instant::ZERO), None);
    Some(answer.mad)
}

fn request(id: AttributeId) -> Mad {
    let mut mad = Mad::new(MgmtClass::TRACER, Method::GET, TransactionId(9));
    mad.set_oui(Oui::OPENIB);
    mad.set_attribute_id(id);
    mad
}

fn route(ports: &[u8]) -> Mad {
    let mut route = SourceRoute { hop_count: ports.len() as u8, ..SourceRoute::zeroed() };
    for (entry, &port) in route.ports.iter_mut().zip(ports) {
        *entry = port;
    }
    let mut mad = request(AttributeId::SOURCE_ROUTE);
    mad.set_attribute(&route);
    mad
}

fn source_route(mad: &Mad) -> SourceRoute {
    mad.attribute().expect("the attribute is a SourceRoute")
}

#[test]
fn arrival_port_is_compared_with_the_last_hop() {
    let mut agent = agent();
    let answer = ask(&mut agent, Some(5), route(&[3, 5])).expect("the agent responds");
    assert_eq!((answer.method(), answer.status()), (Method::GET_RESP, MadStatus::OK));
    assert_eq!(
        (source_route(&answer).incoming_port, source_route(&answer).ports[..2].to_vec()),
        (5, vec![3, 5])
    );
    let answer = ask(&mut agent, Some(6), route(&[3, 5])).expect("the agent responds");
    // Bits 2 to 4 of the status hold the code 7 of an invalid field.
    assert_eq!((answer.status(), answer.status().field_code()), (MadStatus(0x001c), 7));
    assert_eq!(source_route(&answer).incoming_port, 6);
    let all: Vec<u8> = (1..=64).collect();
    let answer = ask(&mut agent, Some(64), route(&all)).expect("the agent responds");
    assert!(answer.status().is_ok());
    assert_eq!(
        agent.counters(),
        AgentCounters { answered: 3, mismatches: 1, refused: 0, ignored: 0 }
    );
}

#[test]
fn unknown_arrival_port_is_reported_as_unknown() {
    let mut agent = agent();
    let answer = ask(&mut agent, None, route(&[5])).expect("the agent responds");
    assert!(answer.status().is_ok());
    assert_eq!(source_route(&answer).incoming_port, UNKNOWN_PORT);
}

#[test]
fn invalid_hop_counts_are_bad_fields() {
    let mut agent = agent();
    assert_eq!(
        ask(&mut agent, Some(5), route(&[])).map(|it| it.status()),
        Some(MadStatus::BAD_FIELD)
    );
    let mut mad = route(&[5]);
    let long = SourceRoute { hop_count: 65, ..source_route(&mad) };
    mad.set_attribute(&long);
    let answer = ask(&mut agent, Some(5), mad).expect("the agent responds");
    assert_eq!((answer.status(), source_route(&answer).incoming_port), (MadStatus::BAD_FIELD, 5));
    assert_eq!(agent.counters().refused, 2);
}

#[test]
fn agent_responds_to_class_port_info_and_ibping() {
    let mut agent = agent();
    let answer = ask(&mut agent, Some(1), request(AttributeId::CLASS_PORT_INFO))
        .expect("the agent responds");
    let info: ClassPortInfo = answer.attribute().expect("the attribute is a ClassPortInfo");
    assert_eq!((info.base_version, info.class_version, info.capability_mask), (1, 1, 0));
    let answer =
        ask(&mut agent, None, ping(TransactionId(3))).expect("the agent responds to ibping");
    assert_eq!((answer.status(), &*ping_host(&answer)), (MadStatus::OK, "node1.example"));
}

#[test]
fn other_requests_are_refused_or_ignored() {
    let mut agent = agent();
    let mut status = |mad| ask(&mut agent, Some(1), mad).map(|answer| answer.status());
    let mut set = route(&[1]);
    set.set_method(Method::SET);
    assert_eq!(status(set), Some(MadStatus::BAD_METHOD));
    assert_eq!(status(request(AttributeId(0x77))), Some(MadStatus::BAD_METHOD_ATTRIBUTE));
    let mut version = route(&[1]);
    version.0[2] = 2;
    assert_eq!(status(version), Some(MadStatus::BAD_VERSION));
    let mut other = route(&[1]);
    other.set_oui(Oui(0x00_02c9));
    assert_eq!(status(other), None);
    let mut answer = route(&[1]);
    answer.answer(MadStatus::OK);
    assert_eq!(status(answer), None);
    let mut trap = route(&[1]);
    trap.set_method(Method::SEND);
    assert_eq!(status(trap), None);
    assert_eq!(
        agent.counters(),
        AgentCounters { answered: 3, mismatches: 0, refused: 3, ignored: 3 }
    );
}

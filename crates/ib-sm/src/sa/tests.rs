use super::*;
use ib_link::Remote;
use ib_wire::mad::TransactionId;
use ib_wire::mad::sm::SmInfo;

#[test]
fn what_costs_more_than_the_credit_is_paid_by_the_next_ones() {
    let config = SmConfig::default();
    let mut administration = Administration::new(&config);
    let (tables, multicast, written) = Default::default();
    let known = SubnetView {
        subnet: None,
        tables: &tables,
        multicast: &multicast,
        written: &written,
        manager: SmInfo::zeroed(),
        sa_key: config.sa_key,
    };
    let now = Instant::ZERO;
    for number in 0..3 {
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(number));
        mad.set_attribute_id(AttributeId::NODE_RECORD);
        let datagram = Datagram::new(Remote::gsi(1), mad);
        assert!(administration.handle(now, &Incoming::Received(datagram)));
    }
    // A request costs 5 even when there is no answer.
    for (credit, left) in [(1, 2), (4, 2), (1, 1), (3, 1), (1, 1)] {
        let mut rest = credit;
        administration.work(now, known, &mut rest);
        assert_eq!((rest, administration.responder.requests()), (0, left), "{credit}");
    }
}

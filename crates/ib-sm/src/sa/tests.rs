use super::*;
use ib_link::Remote;
use ib_wire::mad::TransactionId;
use ib_wire::mad::sm::SmInfo;

#[test]
fn overrun_is_charged_to_later_budgets() {
    let config = SmConfig::default();
    let mut sa = Sa::new(&config);
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
        assert!(sa.handle(now, &Incoming::Received(datagram)));
    }
    // A request costs 5 µs even if it gets no response.
    for (credit, left) in [(1, 2), (4, 2), (1, 1), (3, 1), (1, 1)] {
        let mut become_idle = credit;
        sa.work(now, known, &mut become_idle);
        assert_eq!((become_idle, sa.responder.requests()), (0, left), "{credit}");
    }
}

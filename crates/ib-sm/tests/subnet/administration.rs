//! What ports are told who ask administration: which paths there are, and of which ports they hear.

use ib_link::{Datagram, Incoming, Remote};
use ib_sm::SmConfig;
use ib_wire::mad::sa::{ComponentMask, PKeyTableRecord, SaHeader};
use ib_wire::mad::{Attribute, Mad, MadStatus, Method, MgmtClass, TransactionId};

use crate::lab::Lab;

fn up(kind: &str, config: SmConfig) -> Lab {
    let mut lab = Lab::new(kind);
    lab.add(0, config);
    lab.run_while(|lab| lab.stations[0].reports.is_empty());
    lab
}

fn request<R: Attribute>(method: Method, (key, mask): (u64, &[u8]), template: &R) -> Mad {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
    mad.set_attribute(template);
    let component_mask = ComponentMask::of(mask);
    mad.set_sa(&SaHeader { sm_key: key, component_mask, ..mad.sa() });
    mad
}

/// Has a host ask, and returns the answer when there is one of a datagram at once.
fn told(lab: &mut Lab, host: usize, mad: Mad) -> Option<Mad> {
    let (now, remote) = (lab.sim.now(), Remote::gsi(lab.lid(host)));
    let manager = &mut lab.stations[0].manager;
    manager.handle(now, &Incoming::Received(Datagram::new(remote, mad)));
    let mut answers = std::iter::from_fn(|| manager.poll_transmit(now));
    answers.find(|it| it.mad.class() == MgmtClass::SUBN_ADM).map(|answer| answer.mad)
}

#[test]
fn requests_are_trusted_by_the_key_of_administration() {
    let config = SmConfig { sm_key: 0x1111, sa_key: 0x2222, ..SmConfig::default() };
    let mut lab = up("torus 3x3 hosts=1", config);
    let lid = lab.lid(1);
    let wanted = PKeyTableRecord { lid, ..PKeyTableRecord::zeroed() };
    let mut ask = |key| told(&mut lab, 1, request(Method::GET, (key, &[0, 1]), &wanted));
    assert_eq!(ask(0x2222).map(|answer| answer.status()), Some(MadStatus::OK));
    assert_eq!(ask(0).map(|answer| answer.status()), Some(MadStatus::SA_REQUEST_INVALID));
    assert_eq!(ask(0x1111), None, "the managers' key is another one");
    assert_eq!(ask(1), None);
}

//! Connects queue pairs of two hosts through their connection managers.

use ib_cm::{AcceptParams, CmEvent, ConnectParams, ConnectionId, Requested};
use ib_device::route_of;
use ib_hca::{AccessFlags, QpAttr, QpId, QpState, QpType};
use ib_link::Route;
use ib_types::{Mtu, PKey, Psn, Qpn};
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::sm::MtuCode;

use super::{Lab, SERVICE, to};

impl Lab {
    /// Connects two hosts over the path that the SA returns.
    pub(crate) fn connect(&mut self, here: usize, there: usize) -> [QpId; 2] {
        self.connect_by(here, there, |path| route_of(&path))
    }

    /// Connects two hosts. `route` converts the SA's path record to the route of the connection.
    pub(crate) fn connect_by(
        &mut self,
        here: usize,
        there: usize,
        route: impl Fn(PathRecord) -> Route,
    ) -> [QpId; 2] {
        let path = self.path(here, there);
        let (route, mtu) = (
            route(path),
            Mtu::from_code(path.mtu.0).expect("the MTU code in the path record is valid"),
        );
        let qps = [self.create(here, QpType::Rc), self.create(there, QpType::Rc)];
        let psns = [Psn::truncated(0xff_fff0), Psn::truncated(0x7f_fffb)];
        let now = self.sim.now();
        let params = ConnectParams {
            path_mtu: MtuCode(mtu.code()),
            responder_resources: 16,
            initiator_depth: 16,
            ..ConnectParams::new(route, SERVICE, self.number(here, qps[0]), psns[0])
        };
        let id =
            self.device(here).engines().cm.connect(now, &params).expect("the parameters are valid");

        let requested = self.wait(|lab| {
            let requested = |event: &CmEvent| matches!(event, CmEvent::Requested(_));
            match take(&mut lab.hosts[there].cm, requested)? {
                CmEvent::Requested(requested) => Some(requested),
                _ => None,
            }
        });
        let Requested { id: accepted, path: back, req, .. } = *requested;
        self.program(there, qps[1], (back, mtu, req.local_qpn), (psns[1], req.starting_psn));
        let params = AcceptParams {
            responder_resources: 16,
            initiator_depth: 16,
            ..AcceptParams::new(self.number(there, qps[1]), psns[1])
        };
        let now = self.sim.now();
        self.device(there)
            .engines()
            .cm
            .accept(now, accepted, &params)
            .expect("the parameters are valid");

        let rep = self.wait(|lab| {
            let connected =
                |event: &CmEvent| matches!(event, CmEvent::Connected(it) if it.id == id);
            match take(&mut lab.hosts[here].cm, connected)? {
                CmEvent::Connected(connected) => Some(connected.rep),
                _ => None,
            }
        });
        self.program(here, qps[0], (route, mtu, rep.local_qpn), (psns[0], rep.starting_psn));
        self.device(here)
            .engines()
            .cm
            .established(id, b"")
            .expect("the connection manager has received the REP");
        self.wait(|lab| take(&mut lab.hosts[there].cm, |event| is_ready(event, accepted)));
        qps
    }

    /// Brings a connected queue pair into state `Rts`.
    fn program(
        &mut self,
        host: usize,
        qp: QpId,
        (route, mtu, peer): (Route, Mtu, Qpn),
        (sends, receives): (Psn, Psn),
    ) {
        let states = [
            QpAttr {
                pkey: Some(PKey::DEFAULT),
                qp_access_flags: Some(AccessFlags::ALL),
                ..to(QpState::Init)
            },
            QpAttr {
                route: Some(route),
                path_mtu: Some(mtu),
                dest_qp_num: Some(peer),
                rq_psn: Some(receives),
                max_dest_rd_atomic: Some(16),
                min_rnr_timer: Some(12),
                ..to(QpState::Rtr)
            },
            QpAttr {
                sq_psn: Some(sends),
                timeout: Some(14),
                retry_cnt: Some(7),
                rnr_retry: Some(7),
                max_rd_atomic: Some(16),
                ..to(QpState::Rts)
            },
        ];
        for attr in states {
            self.modify(host, qp, &attr);
        }
    }
}

fn is_ready(event: &CmEvent, connection: ConnectionId) -> bool {
    matches!(event, CmEvent::Established { id, .. } if *id == connection)
}

/// Removes and returns the first event that `is_it` accepts.
fn take(events: &mut Vec<CmEvent>, is_it: impl Fn(&CmEvent) -> bool) -> Option<CmEvent> {
    let place = events.iter().position(is_it)?;
    Some(events.remove(place))
}

//! What a connected queue pair costs that does nothing: makes many, and prints what the process has grown by.

use std::io::Write as _;

use ib_hca::{Hca, HcaConfig, QpAttr, QpCap, QpInitAttr, QpState, QpType};
use ib_link::Route;
use ib_types::{Gid, Guid, Instant, Mtu, PKey, Psn, Qpn};

const COUNT: usize = 10_000;

/// Returns how many bytes of the process are in memory.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux tells it");
    let pages = pages.split_whitespace().nth(1).and_then(|word| word.parse::<usize>().ok());
    pages.expect("a number") * 4096
}

fn main() {
    let gid = Gid(0xffff_0a00_0001);
    let mut hca = Hca::new(HcaConfig::new(Guid(1), vec![gid]), [1; 32]);
    let pd = hca.alloc_pd().expect("there is room");
    let cq = hca.create_cq(16).expect("there is room");
    let cap = QpCap::default();
    let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
    let route = Route { source: gid, is_global: true, ..Route::default() };
    let changes = [
        QpAttr {
            qp_state: Some(QpState::Init),
            pkey: Some(PKey::DEFAULT),
            qp_access_flags: Some(ib_hca::AccessFlags::ALL),
            ..QpAttr::default()
        },
        QpAttr {
            qp_state: Some(QpState::Rtr),
            route: Some(route),
            path_mtu: Some(Mtu::B4096),
            dest_qp_num: Some(Qpn::truncated(99)),
            rq_psn: Some(Psn::truncated(1)),
            max_dest_rd_atomic: Some(16),
            min_rnr_timer: Some(12),
            ..QpAttr::default()
        },
        QpAttr {
            qp_state: Some(QpState::Rts),
            sq_psn: Some(Psn::truncated(1)),
            timeout: Some(14),
            retry_cnt: Some(7),
            rnr_retry: Some(7),
            max_rd_atomic: Some(16),
            ..QpAttr::default()
        },
    ];
    let before = resident();
    for _ in 0..COUNT {
        let qp = hca.create_qp(pd, &init).expect("there is room");
        for attr in &changes {
            hca.modify_qp(Instant::ZERO, qp, attr).expect("it can be changed");
        }
    }
    let each = (resident() - before) / COUNT;
    let mut out = std::io::stdout();
    writeln!(out, "{COUNT} connected queue pairs without work requests: {each} bytes each")
        .expect("output");
}

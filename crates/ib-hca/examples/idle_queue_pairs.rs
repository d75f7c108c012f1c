//! Measures the memory of idle queue pairs: brings 10,000 queue pairs into state RTS, and prints the growth of the
//! resident memory per queue pair.

use std::io::Write as _;

use ib_hca::{Hca, HcaConfig, QpCap, QpConnection, QpInitAttr, QpType};
use ib_link::Route;
use ib_types::{Gid, Guid, Instant, Mtu, PKey, Psn, Qpn};

const COUNT: usize = 10_000;

/// Returns the resident memory of the process in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has `/proc/self/statm`");
    let pages = pages.split_whitespace().nth(1).and_then(|word| word.parse::<usize>().ok());
    pages.expect("the second field of `statm` is a number") * 4096
}

fn main() {
    let gid = Gid(0xffff_0a00_0001);
    let mut hca = Hca::new(HcaConfig::new(Guid(1), vec![gid]), [1; 32]);
    let pd = hca.alloc_pd().expect("the HCA has no protection domain yet");
    let cq = hca.create_cq(16).expect("the HCA has no CQ yet");
    let cap = QpCap::default();
    let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
    let route = Route { source: gid, is_global: true, ..Route::default() };
    let connection = QpConnection {
        pkey: PKey::DEFAULT,
        access: ib_hca::AccessFlags::ALL,
        route,
        path_mtu: Mtu::B4096,
        dest_qp_num: Qpn::truncated(99),
        rq_psn: Psn::truncated(1),
        sq_psn: Psn::truncated(1),
        max_dest_rd_atomic: 16,
        max_rd_atomic: 16,
        min_rnr_timer: 12,
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
    };
    let changes = [connection.to_init(), connection.to_rtr(), connection.to_rts()];
    let before = resident();
    for _ in 0..COUNT {
        let qp = hca.create_qp(pd, &init).expect("the HCA permits 10,000 queue pairs");
        for attr in &changes {
            hca.modify_qp(Instant::ZERO, qp, attr).expect("the transition is valid");
        }
    }
    let each = (resident() - before) / COUNT;
    let mut out = std::io::stdout();
    writeln!(out, "{COUNT} connected queue pairs without work requests: {each} bytes each")
        .expect("standard output is writable");
}

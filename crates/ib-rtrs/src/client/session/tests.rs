use ib_wire::rtrs::{ConnectFlags, MAGIC, VERSION};

use super::*;

const LIMITS: Limits = Limits { queue_depth: 8, max_io_size: 4096, max_header_size: 512 };

fn response(limits: Limits) -> ConnectResponse {
    let Limits { queue_depth, max_io_size, max_header_size } = limits;
    let (magic, version, error, flags) = (MAGIC, VERSION, 0, ConnectFlags(0));
    ConnectResponse { magic, version, error, queue_depth, max_io_size, max_header_size, flags }
}

#[test]
fn limits_fit_into_memory_and_immediate_data() {
    assert_eq!(Limits::of(&response(LIMITS)), Ok(LIMITS));
    for wrong in [
        Limits { queue_depth: 0, ..LIMITS },
        Limits { max_io_size: 0, ..LIMITS },
        Limits { max_io_size: 1 << 28, ..LIMITS },
        Limits { max_io_size: u32::MAX, ..LIMITS },
        Limits { max_header_size: 63, ..LIMITS },
        Limits { max_header_size: (1 << 20) + 1, ..LIMITS },
        Limits { queue_depth: u16::MAX, max_io_size: 1 << 12, max_header_size: 64 },
    ] {
        let refused = Limits::of(&response(wrong));
        assert!(matches!(refused, Err(Failure::Protocol(_))), "{wrong:?}");
    }
}

#[test]
fn later_limits_must_not_be_below_the_first_ones() {
    let mut session = Session::new([0; 16]);
    assert_eq!(session.limits(), None);
    session.agree(LIMITS).expect("the first limits are adopted");
    let other = session.agree(Limits { queue_depth: 9, ..LIMITS });
    assert_eq!(other, Err(Failure::QueueDepth { found: 9, expected: 8 }));
    let shorter = session.agree(Limits { max_io_size: 4095, ..LIMITS });
    assert_eq!(shorter, Err(Failure::MaxIoSize { found: 4095, expected: 4096 }));
    session
        .agree(Limits { max_io_size: 8192, max_header_size: 256, ..LIMITS })
        .expect("a greater data length is accepted");
    assert_eq!(session.limits(), Some(Limits { max_header_size: 256, ..LIMITS }));
}

#[test]
fn new_epoch_with_connected_paths_is_a_loss() {
    let mut session = Session::new([0; 16]);
    assert!(!session.path_connected(5, false));
    assert!(!session.path_connected(5, true));
    assert!(!session.path_connected(6, false), "no other path is connected");
    assert!(!session.is_lost);
    assert!(session.path_connected(7, true));
    assert!(session.is_lost);
}

use super::*;

fn id() -> DeviceId {
    let mut client = crate::Client::new(1);
    client.open("disk", ib_wire::rnbd::AccessMode::READ_WRITE).expect("the name is valid")
}

fn command(operation: Operation, fua: bool) -> Command {
    Command { operation, offset: 0, length: 512, fua }
}

fn geometry() -> Geometry {
    Geometry { write_back: true, fua: true, ..Geometry::new(1 << 20, 512) }
}

#[test]
fn state_of_a_device_follows_its_openings_and_paths() {
    let (mut devices, id) = (Devices::default(), id());
    assert_eq!(devices.state(id, 1), DeviceState::Closed);
    devices.path_connected();
    devices.opened(id, true);
    assert_eq!(devices.state(id, 1), DeviceState::Open(SessionLoss::Excluded));
    devices.path_connected();
    for _ in 0..MAX_REOPENINGS {
        assert_eq!(devices.state(id, 1), DeviceState::Open(SessionLoss::Possible));
        devices.reopen();
        assert_eq!(devices.state(id, 1), DeviceState::Open(SessionLoss::Known));
        devices.session_lost();
    }
    assert_eq!(devices.state(id, 1), DeviceState::Open(SessionLoss::Repeated));
    devices.session_is_known();
    assert_eq!(devices.state(id, 1), DeviceState::Open(SessionLoss::Possible));
    devices.opened(id, true);
    assert_eq!(devices.state(id, 1), DeviceState::Reopened);
    devices.may_be_overwritten(id);
    devices.opened(id, true);
    assert_eq!(devices.state(id, 2), DeviceState::ReopenedAfterRestart);
    assert_eq!(devices.state(id, 3), DeviceState::Open(SessionLoss::Excluded));
    devices.close(id);
    assert_eq!(devices.state(id, 3), DeviceState::Closed);
}

#[test]
fn flush_fails_once_after_a_loss() {
    let (mut devices, id, geometry) = (Devices::default(), id(), geometry());
    devices.opened(id, true);
    let done = |devices: &mut Devices, operation, fua, is_own| {
        let covers = devices.changes(id);
        devices.succeeded(id, &geometry, &command(operation, fua), covers, is_own)
    };
    // Neither reads nor writes with FUA need a flush.
    done(&mut devices, Operation::Read, false, false);
    done(&mut devices, Operation::Write, true, false);
    devices.opened(id, false);
    assert_eq!(devices.losses(), 0);
    done(&mut devices, Operation::Write, false, false);
    assert_eq!(done(&mut devices, Operation::Flush, false, true), Errno::OK);
    devices.opened(id, false);
    assert_eq!(devices.losses(), 0, "the changes were flushed");
    done(&mut devices, Operation::Discard, false, false);
    devices.opened(id, false);
    assert_eq!(devices.losses(), 1);
    assert_eq!(done(&mut devices, Operation::Flush, false, false), Errno::EIO, "flush of a write");
    assert_eq!(done(&mut devices, Operation::Flush, false, true), Errno::EIO);
    assert_eq!(done(&mut devices, Operation::Flush, false, true), Errno::OK);
}

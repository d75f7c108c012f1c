use super::*;

fn command(operation: Operation, offset: u64, length: u64) -> Command {
    Command { operation, offset, length, fua: false }
}

#[test]
fn commands_are_whole_blocks_within_the_device() {
    let geometry = Geometry::new(1 << 20, 4096);
    let check = |offset, length| geometry.check(&command(Operation::Read, offset, length));
    assert_eq!(check(0, 1 << 20), Ok(()));
    assert_eq!(check(1 << 20, 0), Ok(()));
    assert_eq!(check(512, 4096), Err(CommandError::Unaligned));
    assert_eq!(check(4096, 512), Err(CommandError::Unaligned));
    assert_eq!(check(4096, 1 << 20), Err(CommandError::Beyond));
    assert_eq!(check(u64::MAX - 4095, 4096), Err(CommandError::Beyond));
    // The range of a flush is ignored.
    let flush = command(Operation::Flush, u64::MAX, 7);
    assert_eq!(geometry.check(&flush), Ok(()));
}

#[test]
fn devices_do_what_they_say() {
    let mut geometry = Geometry::new(1 << 20, 512);
    let all = [
        (Operation::Write, CommandError::ReadOnly),
        (Operation::WriteZeroes, CommandError::ReadOnly),
        (Operation::Discard, CommandError::NotDone),
        (Operation::SecureErase, CommandError::NotDone),
    ];
    for (operation, why) in all {
        let expected = if why == CommandError::ReadOnly { Ok(()) } else { Err(why) };
        assert_eq!(geometry.check(&command(operation, 0, 512)), expected, "{operation}");
    }
    geometry.discard = Some(Discard { granularity: 512, alignment: 0, max: 4096 });
    geometry.secure_erase = true;
    for (operation, _) in all {
        assert_eq!(geometry.check(&command(operation, 0, 512)), Ok(()), "{operation}");
    }
    geometry.read_only = true;
    for (operation, _) in all {
        let found = geometry.check(&command(operation, 0, 512));
        assert_eq!(found, Err(CommandError::ReadOnly), "{operation}");
    }
}

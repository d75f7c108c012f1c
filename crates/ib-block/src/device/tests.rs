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

fn geometry() -> Geometry {
    Geometry {
        discard: Some(Discard { granularity: 512, alignment: 0, max: 1 << 20 }),
        write_back: true,
        ..Geometry::new(1 << 30, 512)
    }
}

fn steps(operation: Operation, length: u64, fua: bool, geometry: &Geometry) -> Vec<Command> {
    Plan::new(Command { operation, offset: 512, length, fua }, geometry, 126_976).collect()
}

#[test]
fn steps_make_the_command() {
    for operation in [Operation::Read, Operation::Write, Operation::WriteZeroes] {
        for length in [0, 512, 126_976, 126_976 + 512, 10 << 20] {
            let steps = steps(operation, length, false, &geometry());
            let mut at = 512;
            for step in &steps {
                assert_eq!((step.operation, step.offset, step.fua), (operation, at, false));
                assert!(step.length > 0 && step.length <= 126_976);
                at += step.length;
            }
            assert_eq!(at, 512 + length);
        }
    }
    assert_eq!(steps(Operation::Discard, 3 << 20, false, &geometry()).len(), 3);
}

#[test]
fn a_flush_stands_for_writes_that_reach_the_medium() {
    let last = |operation, geometry: &Geometry| {
        let steps = steps(operation, 1024, true, geometry);
        (steps.len(), steps[0].fua, steps[steps.len() - 1].operation)
    };
    let cached = geometry();
    assert_eq!(last(Operation::Write, &cached), (2, false, Operation::Flush));
    assert_eq!(last(Operation::Discard, &cached), (2, false, Operation::Flush));
    // FUA has no effect on reads.
    assert_eq!(last(Operation::Read, &cached), (1, false, Operation::Read));
    let able = Geometry { fua: true, ..cached };
    assert_eq!(last(Operation::Write, &able), (1, true, Operation::Write));
    // A discard has no FUA, so a flush follows.
    assert_eq!(last(Operation::Discard, &able), (2, false, Operation::Flush));
    // Without a write cache no flush is needed.
    let through = Geometry { write_back: false, ..able };
    assert_eq!(last(Operation::Write, &through), (1, false, Operation::Write));
}

#[test]
fn a_flush_is_one_step() {
    let steps = steps(Operation::Flush, 77, true, &geometry());
    assert_eq!(steps, [Command::FLUSH]);
}

#[test]
fn blocks_are_not_cut() {
    let geometry = Geometry::new(1 << 30, 4096);
    let command = Command { operation: Operation::Read, offset: 0, length: 40_960, fua: false };
    let lengths: Vec<u64> = Plan::new(command, &geometry, 9000).map(|step| step.length).collect();
    assert_eq!(lengths, [8192; 5]);
}

use super::*;
use crate::up::pass::tests::Memory;

const SIZE: u64 = MOST + 4096;

/// Lets an exercise go on until it ends or something is so.
fn run(exercise: &mut Exercise, device: &mut Memory, until: impl Fn(&Exercise) -> bool) -> Instant {
    let mut now = Instant::ZERO;
    while exercise.is_running() && !until(exercise) {
        exercise.work(now, device, false);
        now += Duration::from_millis(5);
        assert!(now < Instant::ZERO + Duration::from_secs(60), "it does not end");
    }
    now
}

fn started(seconds: u64) -> Exercise {
    let mut exercise = Exercise::default();
    assert!(!exercise.progress().running && exercise.due().is_none());
    exercise.start(Instant::ZERO, SIZE, Duration::from_secs(seconds));
    assert_eq!(exercise.due(), Some(Instant::ZERO));
    exercise
}

#[test]
fn the_device_is_afterwards_as_it_was() {
    let mut device = Memory::new(SIZE as usize);
    let before = device.bytes.clone();
    let mut exercise = started(1);
    run(&mut exercise, &mut device, |exercise| exercise.progress().done > 4 * MOST);
    assert_ne!(device.bytes[4096..], before[4096..], "it is written");
    assert_eq!(device.bytes[..4096], before[..4096], "but only its end is");
    let end = run(&mut exercise, &mut device, |_| false);
    assert!(end < Instant::ZERO + Duration::from_secs(2), "{end}");
    assert_eq!(device.bytes, before);
    let Progress { running, done, errors } = exercise.progress();
    assert!(!running && errors == 0 && done > 5 * MOST, "{done}");
    assert_eq!(exercise.due(), None);
}

#[test]
fn it_ends_early_when_somebody_wants_the_device() {
    let mut device = Memory::new(SIZE as usize);
    let before = device.bytes.clone();
    // At any stage of it.
    for parts in 0..12 {
        let mut exercise = started(1000);
        let now = run(&mut exercise, &mut device, |it| it.progress().done > parts * MOST / 2);
        let mut rounds = 0;
        while exercise.is_running() {
            exercise.work(now, &mut device, true);
            rounds += 1;
        }
        assert!(rounds < 30, "{rounds}");
        assert_eq!(device.bytes, before);
        assert_eq!(exercise.progress().errors, 0);
    }
}

#[test]
fn what_cannot_be_read_is_not_written() {
    let mut device = Memory::new(SIZE as usize);
    device.bad[0] = Some(SIZE - 1);
    let mut exercise = started(1);
    run(&mut exercise, &mut device, |_| false);
    assert_eq!((exercise.progress().errors, device.writes), (1, 0));
}

#[test]
fn what_was_there_is_put_back_until_it_is_there() {
    let mut device = Memory::new(SIZE as usize);
    let before = device.bytes.clone();
    let mut exercise = started(1);
    run(&mut exercise, &mut device, |it| {
        it.run.as_ref().is_some_and(|it| it.stage == Stage::PuttingBack)
    });
    device.bad[1] = Some(SIZE - 1);
    let is_back = |it: &Exercise| it.progress().errors > 3;
    run(&mut exercise, &mut device, is_back);
    assert!(exercise.is_running() && exercise.due().is_some_and(|at| at > Instant::ZERO));
    assert_ne!(device.bytes, before);
    device.bad[1] = None;
    run(&mut exercise, &mut device, |_| false);
    assert_eq!(device.bytes, before);
}

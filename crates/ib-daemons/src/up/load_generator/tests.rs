use super::*;
use crate::up::pass::tests::Memory;

const SIZE: u64 = MOST + 4096;

/// Runs the load generator until it stops or the given condition is true.
fn run(
    generator: &mut LoadGenerator,
    device: &mut Memory,
    until: impl Fn(&LoadGenerator) -> bool,
) -> Instant {
    let mut now = Instant::ZERO;
    while generator.is_running() && !until(generator) {
        generator.work(now, device, false);
        now += Duration::from_millis(5);
        assert!(now < Instant::ZERO + Duration::from_secs(60), "the run does not stop");
    }
    now
}

fn started(seconds: u64) -> LoadGenerator {
    let mut generator = LoadGenerator::default();
    assert!(!generator.progress().running && generator.due().is_none());
    generator.start(Instant::ZERO, SIZE, Duration::from_secs(seconds));
    assert_eq!(generator.due(), Some(Instant::ZERO));
    generator
}

#[test]
fn content_is_restored_at_the_end() {
    let mut device = Memory::new(SIZE as usize);
    let before = device.bytes.clone();
    let mut generator = started(1);
    run(&mut generator, &mut device, |generator| generator.progress().done > 4 * MOST);
    assert_ne!(device.bytes[4096..], before[4096..], "the end of the device is written");
    assert_eq!(device.bytes[..4096], before[..4096], "the rest of the device is unchanged");
    let end = run(&mut generator, &mut device, |_| false);
    assert!(end < Instant::ZERO + Duration::from_secs(2), "{end}");
    assert_eq!(device.bytes, before);
    let Progress { running, done, errors } = generator.progress();
    assert!(!running && errors == 0 && done > 5 * MOST, "{done}");
    assert_eq!(generator.due(), None);
}

#[test]
fn interrupted_run_restores_the_content() {
    let mut device = Memory::new(SIZE as usize);
    let before = device.bytes.clone();
    // The run is interrupted in each of its stages.
    for parts in 0..12 {
        let mut generator = started(1000);
        let now = run(&mut generator, &mut device, |it| it.progress().done > parts * MOST / 2);
        let mut rounds = 0;
        while generator.is_running() {
            generator.work(now, &mut device, true);
            rounds += 1;
        }
        assert!(rounds < 30, "{rounds}");
        assert_eq!(device.bytes, before);
        assert_eq!(generator.progress().errors, 0);
    }
}

#[test]
fn unreadable_content_is_not_overwritten() {
    let mut device = Memory::new(SIZE as usize);
    device.bad[0] = Some(SIZE - 1);
    let mut generator = started(1);
    run(&mut generator, &mut device, |_| false);
    assert_eq!((generator.progress().errors, device.writes), (1, 0));
}

#[test]
fn restore_is_retried_until_it_succeeds() {
    let mut device = Memory::new(SIZE as usize);
    let before = device.bytes.clone();
    let mut generator = started(1);
    run(&mut generator, &mut device, |it| {
        it.run.as_ref().is_some_and(|it| it.stage == Stage::Restoring)
    });
    device.bad[1] = Some(SIZE - 1);
    let is_back = |it: &LoadGenerator| it.progress().errors > 3;
    run(&mut generator, &mut device, is_back);
    assert!(generator.is_running() && generator.due().is_some_and(|at| at > Instant::ZERO));
    assert_ne!(device.bytes, before);
    device.bad[1] = None;
    run(&mut generator, &mut device, |_| false);
    assert_eq!(device.bytes, before);
}

//! A program that misuses its uverbs device must not crash or block the library in its process.
//!
//! `VERBS_FIRST` is the first seed, and `VERBS_RUNS` is the number of seeds. `cargo xtask campaign verbs --runs 100000`
//! runs 100,000 seeds. A case is one action of a program, such as a command or a change of a ring.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

mod commands;
mod memory;
mod program;

use commands::Kind;
use ib_types::rng::Rng;
use memory::Mapping;
use program::Program;

// The library's replacements of C library functions are linked into this test.
use ib_preload as _;

/// Number of input bytes of a run.
const LENGTH: usize = 1000;

/// Completion statuses that must occur within 500 runs: success, local length error, local QP operation error, local
/// protection error, flush error, memory window bind error.
const STATUSES: [u32; 6] = [0, 1, 2, 4, 5, 6];

/// A run that takes longer fails the test.
const LIMIT: Duration = Duration::from_secs(60);

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("the variable is a number"))
}

/// IP address of the device. The first access sets the environment variable `IBFABRIC_ROCE` and the panic hook.
static ADDRESS: LazyLock<Ipv4Addr> = LazyLock::new(|| {
    let address = Ipv4Addr::from_bits(0x7f4d_0000 | std::process::id() & 0xffff);
    // SAFETY: no thread of this test reads the environment before this closure has run.
    unsafe { std::env::set_var("IBFABRIC_ROCE", address.to_string()) };
    // The library turns a panic of its code into an error. In this test, the panic hook aborts the process instead.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::abort();
    }));
    address
});

#[test]
fn device_survives_any_command_and_any_ring() {
    let address = *ADDRESS;
    let (first, runs) = (number("VERBS_FIRST", 0), number("VERBS_RUNS", 1500));
    let seed = AtomicU64::new(first);
    let is_finished = AtomicBool::new(false);
    // This program keeps the device open between the runs.
    let anchor = Program::new(std::iter::empty(), address.to_ipv6_mapped().octets());
    let mut cases = 0;
    let (mut commands, mut statuses) = (BTreeSet::new(), BTreeSet::new());
    std::thread::scope(|scope| {
        scope.spawn(|| watch(&seed, &is_finished));
        for run in first..first + runs {
            seed.store(run, Ordering::Relaxed);
            let mut rng = Rng::new(run);
            let input: Vec<u8> = (0..LENGTH).map(|_| rng.next_u64() as u8).collect();
            let gid = address.to_ipv6_mapped().octets();
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                // In every second run, another thread changes the rings while the library reads them.
                if run % 2 == 1 {
                    scope.spawn(|| {
                        scribble(|| rng.next_u64(), || is_over.load(Ordering::Relaxed));
                    });
                }
                let mut program = Program::new(input.into_iter(), gid);
                assert!(run % 2 == 1 || program.has_connected, "the device works at seed {run}");
                program.run();
                cases += program.cases;
                if run % 2 == 0 {
                    commands.append(&mut program.reached.commands);
                    statuses.append(&mut program.reached.statuses);
                }
                is_over.store(true, Ordering::Relaxed);
            });
        }
        is_finished.store(true, Ordering::Relaxed);
    });
    drop(anchor);
    eprintln!("{runs} runs, {cases} cases, completion statuses {statuses:?}");
    assert!(cases >= runs * 60, "{cases} cases in {runs} runs");
    if runs >= 500 {
        let missing: Vec<_> = Kind::ALL.iter().filter(|kind| !commands.contains(kind)).collect();
        assert!(missing.is_empty(), "no command of these kinds has succeeded: {missing:?}");
        let expected = BTreeSet::from(STATUSES);
        assert!(statuses.is_superset(&expected), "found {statuses:?}, expected {expected:?}");
    }
}

/// Returns the error number of the last call.
fn error() -> Option<i32> {
    std::io::Error::last_os_error().raw_os_error()
}

#[test]
fn invalid_addresses_and_offsets_are_refused() {
    let program = Program::new(std::iter::empty(), ADDRESS.to_ipv6_mapped().octets());
    let unmapped = program.arena.pointer(2);
    let descriptors = || std::fs::read_dir("/proc/self/fd").expect("/proc is mounted").count();
    // SAFETY: the device is open. The addresses are invalid, or those of live slices.
    let write = |from: u64, count: usize| unsafe {
        libc::write(program.device, from as *const libc::c_void, count)
    };
    for kind in [Kind::AllocPd, Kind::CreateCq, Kind::CreateRc, Kind::CreateCompChannel] {
        let command = program.words.command(kind, &program.arena, unmapped);
        let before = descriptors();
        for _ in 0..3 {
            let written = write(command.as_ptr().addr() as u64, command.len());
            assert_eq!((written, error()), (-1, Some(libc::EFAULT)), "{kind:?}");
        }
        assert!(descriptors() <= before, "{kind:?} leaves descriptors open");
    }
    for from in [0, 1, unmapped, u64::MAX] {
        assert_eq!((write(from, 24), error()), (-1, Some(libc::EFAULT)), "{from:#x}");
    }
    let command =
        program.words.command(Kind::QueryDevice, &program.arena, program.arena.writable());
    // SAFETY: the slice is live.
    let written = unsafe { libc::write(program.device, command.as_ptr().cast(), command.len()) };
    assert_eq!(written, command.len() as isize);
    let size = program.rings[0].size;
    assert!(Mapping::of_file(program.device, 0, size).inspect(Mapping::unmap).is_some());
    for (offset, length) in [(0, size + 1), (4096 * 1000, 4096), (1 << 62, 4096)] {
        let mapped = Mapping::of_file(program.device, offset, length);
        assert_eq!((mapped.is_some(), error()), (false, Some(libc::EINVAL)), "{offset:#x}");
    }
}

/// Aborts the test if a run takes longer than [`LIMIT`].
fn watch(seed: &AtomicU64, is_finished: &AtomicBool) {
    let (mut last, mut since) = (u64::MAX, Instant::now());
    while !is_finished.load(Ordering::Relaxed) {
        let run = seed.load(Ordering::Relaxed);
        if run != last {
            (last, since) = (run, Instant::now());
        }
        if since.elapsed() > LIMIT {
            eprintln!("the run of seed {run} has not ended within {} s", LIMIT.as_secs());
            std::process::abort();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Changes words of the shared rings until `is_finished` returns true.
fn scribble(mut next: impl FnMut() -> u64, is_finished: impl Fn() -> bool) {
    while !is_finished() {
        let rings = program::SHARED.lock().expect("no thread panics");
        for _ in 0..64 {
            let Some(ring) = rings.get(next() as usize % rings.len().max(1)) else { break };
            let place = match next() % 4 {
                0 => program::PRODUCER,
                1 => program::CONSUMER,
                _ => next() as usize % (ring.size / 4) * 4,
            };
            let word = if next() & 1 == 0 { next() as u32 % 70_000 } else { next() as u32 };
            ring.word(place).store(word, Ordering::Release);
        }
        drop(rings);
        std::thread::yield_now();
    }
}

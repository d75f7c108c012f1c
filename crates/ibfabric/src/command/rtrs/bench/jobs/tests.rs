use clap::Parser as _;

use super::*;
use crate::cli::rtrs::RtrsCommand;
use crate::cli::{Cli, Command as Chosen};

const SIZE: u64 = 1 << 20;

/// Plans what a command line asks for on a device of 1 MiB that discards.
fn plan(words: &[&str]) -> Result<Jobs, Failure> {
    let common = ["ibfabric", "rtrs", "bench", "--path", "::1", "--device", "disk0"];
    let cli = Cli::try_parse_from([&common[..], words].concat()).expect("a command line");
    let Chosen::Rtrs(rtrs) = &cli.command else { unreachable!() };
    let RtrsCommand::Bench(args) = &rtrs.command else { unreachable!() };
    let discard = ib_block::Discard { granularity: 4096, alignment: 0, max: 1 << 20 };
    let geometry = Geometry { discard: Some(discard), ..Geometry::new(SIZE, 512) };
    Jobs::new(args, &geometry)
}

fn planned(words: &[&str]) -> Jobs {
    plan(words).unwrap_or_else(|error| panic!("{words:?}: {error:?}"))
}

#[test]
fn requests_of_all_lengths_and_places() {
    let mut jobs = planned(&["--rw", "randwrite", "--bsrange", "512-64K"]);
    let (mut lengths, mut unaligned) = (std::collections::BTreeSet::new(), 0);
    for _ in 0..20_000 {
        let Command { operation, offset, length, .. } = jobs.next(0);
        assert_eq!(operation, Operation::Write);
        assert!((512..=65536).contains(&length) && length.is_multiple_of(512));
        assert!(offset + length <= SIZE && offset.is_multiple_of(512));
        lengths.insert(length);
        unaligned += u32::from(!offset.is_multiple_of(4096));
    }
    assert_eq!(lengths.len(), 128, "each length is there");
    assert!(unaligned > 10_000, "{unaligned}");
}

#[test]
fn jobs_go_through_their_own_parts() {
    let mut jobs = planned(&["--rw", "write", "--bs", "64K", "--jobs", "4", "--iodepth", "1"]);
    let offsets = |jobs: &mut Jobs, job| -> Vec<u64> {
        (0..6).map(|_| jobs.next(job).offset >> 16).collect()
    };
    assert_eq!(offsets(&mut jobs, 0), [0, 1, 2, 3, 0, 1]);
    assert_eq!(offsets(&mut jobs, 3), [12, 13, 14, 15, 12, 13]);
}

#[test]
fn flushes_and_discards_come_after_writes() {
    let mut jobs = planned(&["--rw", "randwrite", "--fsync", "3", "--trim", "2"]);
    let all: String = (0..16)
        .map(|_| match jobs.next(0).operation {
            Operation::Write => 'w',
            Operation::Flush => 'f',
            Operation::Discard => 'd',
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(all, "wwdwfwdwwfdwwdwf");
}

#[test]
fn what_cannot_be_is_refused() {
    for (words, why) in [
        (&["--bs", "100"][..], "--bs 100: expected multiples of 512"),
        (&["--bsrange", "512-700"], "--bsrange 512-700: expected multiples of 512"),
        (&["--size", "2M"], "--size 2097152: the device has 1048576 bytes"),
        (&["--bs", "512K", "--jobs", "4"], "each needs room for a request of 524288 bytes"),
        (&["--bs", "64K", "--iodepth", "17", "--verify"], "as many as are under way, 17"),
    ] {
        let error = plan(words).expect_err("it cannot be");
        let Failure::Unusable(error) = error else { panic!("{error:?}") };
        assert!(error.contains(why), "{words:?}: {error}");
    }
}

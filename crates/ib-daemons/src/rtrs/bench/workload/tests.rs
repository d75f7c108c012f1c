use super::*;

const SIZE: u64 = 1 << 20;

fn config() -> BenchConfig {
    BenchConfig { sizes: BlockSizes { least: 4096, most: 4096 }, ..BenchConfig::default() }
}

/// Returns the workload for a device of 1 MiB that supports discards.
fn workload(config: &BenchConfig) -> Result<Workload, WorkloadError> {
    let discard = ib_block::Discard { granularity: 4096, alignment: 0, max: 1 << 20 };
    let geometry = Geometry { discard: Some(discard), ..Geometry::new(SIZE, 512) };
    Workload::new(config, &geometry)
}

#[test]
fn random_blocks_have_all_sizes_and_offsets() {
    let sizes = BlockSizes { least: 512, most: 65536 };
    let config = BenchConfig { rw: ReadWrite::Randwrite, sizes, ..config() };
    let mut workload = workload(&config).expect("the device is large enough");
    let (mut lengths, mut unaligned) = (std::collections::BTreeSet::new(), 0);
    for _ in 0..20_000 {
        let Command { operation, offset, length, .. } = workload.next(0);
        assert_eq!(operation, Operation::Write);
        assert!((512..=65536).contains(&length) && length.is_multiple_of(512));
        assert!(offset + length <= SIZE && offset.is_multiple_of(512));
        lengths.insert(length);
        unaligned += u32::from(!offset.is_multiple_of(4096));
    }
    assert_eq!(lengths.len(), 128, "each block size occurs");
    assert!(unaligned > 10_000, "{unaligned}");
}

#[test]
fn sequential_jobs_use_parts_of_their_own() {
    let sizes = BlockSizes { least: 65536, most: 65536 };
    let config = BenchConfig { rw: ReadWrite::Write, sizes, jobs: 4, iodepth: 1, ..config() };
    let mut workload = workload(&config).expect("the device is large enough");
    let offsets = |workload: &mut Workload, job| -> Vec<u64> {
        (0..6).map(|_| workload.next(job).offset >> 16).collect()
    };
    assert_eq!(offsets(&mut workload, 0), [0, 1, 2, 3, 0, 1]);
    assert_eq!(offsets(&mut workload, 3), [12, 13, 14, 15, 12, 13]);
}

#[test]
fn flushes_and_discards_come_after_writes() {
    let config = BenchConfig { rw: ReadWrite::Randwrite, fsync: 3, trim: 2, ..config() };
    let mut workload = workload(&config).expect("the device is large enough");
    let all: String = (0..16)
        .map(|_| match workload.next(0).operation {
            Operation::Write => 'w',
            Operation::Flush => 'f',
            Operation::Discard => 'd',
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(all, "wwdwfwdwwfdwwdwf");
}

#[test]
fn workloads_that_do_not_fit_the_device_are_refused() {
    let sizes = |least, most| BlockSizes { least, most };
    let unit = 512;
    for (config, expected) in [
        (
            BenchConfig { sizes: sizes(100, 100), ..config() },
            WorkloadError::BlockSize { sizes: sizes(100, 100), unit },
        ),
        (
            BenchConfig { sizes: sizes(512, 700), ..config() },
            WorkloadError::BlockSize { sizes: sizes(512, 700), unit },
        ),
        (
            BenchConfig { size: Some(2 << 20), ..config() },
            WorkloadError::Size { size: 2 << 20, device: SIZE },
        ),
        (
            BenchConfig { sizes: sizes(1 << 19, 1 << 19), jobs: 4, ..config() },
            WorkloadError::Jobs { size: SIZE, jobs: 4, block: 1 << 19 },
        ),
        (
            BenchConfig { sizes: sizes(1 << 16, 1 << 16), iodepth: 17, verify: true, ..config() },
            WorkloadError::Blocks { size: SIZE, blocks: 16, depth: 17 },
        ),
    ] {
        assert_eq!(workload(&config).map(|_| ()), Err(expected), "{config:?}");
    }
    let without = Geometry::new(SIZE, 512);
    let trims = BenchConfig { rw: ReadWrite::Randtrim, ..config() };
    assert_eq!(Workload::new(&trims, &without).map(|_| ()), Err(WorkloadError::NoDiscard));
}

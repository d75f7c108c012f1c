use std::io::Write as _;
use std::time::{Duration, Instant};

use ib_block::Operation;

use super::*;
use ib_os::alarm::Alarm;

const SIZE: u64 = 1 << 20;

/// Executes a command, and returns its status.
fn run(disk: &mut Disk, command: Command, memory: &Arc<Memory>, offset: usize) -> Errno {
    disk.submit(Job { id: 7, command, memory: Arc::clone(memory), offset });
    disk.flush();
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match disk.poll() {
            Some((id, errno)) => {
                assert_eq!(id, 7);
                return errno;
            }
            None => assert!(Instant::now() < end, "{command:?} has not completed within 10 s"),
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn command(operation: Operation, offset: u64, length: u64) -> Command {
    Command { operation, offset, length, fua: operation == Operation::Write && offset == 0 }
}

fn check_operations(disk: &mut Disk) {
    let memory = Memory::zeroed(64 << 10).expect("memory is available");
    memory.write(4096, &[5; 8192]).expect("the range is within the memory");
    assert_eq!(run(disk, command(Operation::Write, 0, 8192), &memory, 4096), Errno::OK);
    assert_eq!(run(disk, command(Operation::Write, SIZE - 512, 512), &memory, 4096), Errno::OK);
    assert_eq!(run(disk, Command::FLUSH, &memory, 0), Errno::OK);
    assert_eq!(run(disk, command(Operation::Discard, 4096, 4096), &memory, 0), Errno::OK);
    assert_eq!(run(disk, command(Operation::WriteZeroes, 512, 512), &memory, 0), Errno::OK);
    assert_eq!(run(disk, command(Operation::Read, 0, 16384), &memory, 16384), Errno::OK);
    let mut bytes = vec![9; 16384];
    memory.read(16384, &mut bytes).expect("the range is within the memory");
    let mut expected = vec![0; 16384];
    expected[..4096].fill(5);
    expected[512..1024].fill(0);
    assert!(bytes == expected);
    assert_eq!(run(disk, command(Operation::Read, SIZE - 512, 512), &memory, 0), Errno::OK);
    memory.read(0, &mut bytes[..512]).expect("the range is within the memory");
    assert_eq!(bytes[..512], [5; 512]);
}

#[test]
fn disk_in_memory_executes_all_operations() {
    let mut disk = Disk::in_memory(SIZE).expect("memory is available");
    assert_eq!((disk.geometry().size, disk.geometry().read_only), (SIZE, false));
    check_operations(&mut disk);
    for size in [0, 100, 513] {
        assert!(matches!(Disk::in_memory(size), Err(DiskError::Size(found)) if found == size));
    }
    assert!(matches!(Disk::in_memory(1 << 62), Err(DiskError::OutOfMemory(_))));
}

#[test]
fn file_executes_all_operations() {
    let alarm = Alarm::new().expect("descriptors are available");
    let file = tempfile::NamedTempFile::new().expect("a file can be created");
    file.as_file().set_len(SIZE + 100).expect("the file can be extended");
    let mut disk = Disk::open(file.path(), alarm.bell()).expect("the file can be opened");
    // The size of the disk is the size of the file, rounded down to whole blocks.
    assert_eq!((disk.geometry().size, disk.geometry().fua), (SIZE, true));
    check_operations(&mut disk);
    let read = std::fs::read(file.path()).expect("the file exists");
    assert_eq!((read[0], read[511], read[512], read[1024], read[4096]), (5, 5, 0, 5, 0));
    // If the file is truncated, reads after its end fail.
    file.as_file().set_len(4096).expect("the file can be truncated");
    let memory = Memory::zeroed(8192).expect("memory is available");
    assert_eq!(run(&mut disk, command(Operation::Read, 8192, 512), &memory, 0), Errno::EIO);
    assert_eq!(run(&mut disk, command(Operation::Read, 0, 8192), &memory, 0), Errno::EIO);
    assert_eq!(run(&mut disk, command(Operation::Read, 0, 4096), &memory, 0), Errno::OK);
}

/// I/O in threads has the same results as io_uring.
#[test]
fn file_without_io_uring_executes_all_operations() {
    let alarm = Alarm::new().expect("descriptors are available");
    let file = tempfile::NamedTempFile::new().expect("a file can be created");
    file.as_file().set_len(SIZE).expect("the file can be extended");
    let mut disk = Disk::open(file.path(), alarm.bell()).expect("the file can be opened");
    let Kind::File(inner) = &mut disk.kind else { panic!("the disk is not a file") };
    inner.without_ring();
    check_operations(&mut disk);
    file.as_file().set_len(4096).expect("the file can be truncated");
    let memory = Memory::zeroed(8192).expect("memory is available");
    assert_eq!(run(&mut disk, command(Operation::Read, 0, 8192), &memory, 0), Errno::EIO);
}

#[test]
fn more_jobs_than_ring_entries_complete() {
    const COUNT: u64 = 2000;
    let alarm = Alarm::new().expect("descriptors are available");
    let mut file = tempfile::NamedTempFile::new().expect("a file can be created");
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at / 512 % 251) as u8).collect();
    file.write_all(&bytes).expect("the file can be written");
    let mut disk = Disk::open(file.path(), alarm.bell()).expect("the file can be opened");
    let memory = Memory::zeroed((COUNT * 512) as usize).expect("memory is available");
    for id in 0..COUNT {
        let command = command(Operation::Read, id * 37 % (SIZE / 512) * 512, 512);
        let memory = Arc::clone(&memory);
        disk.submit(Job { id, command, memory, offset: id as usize * 512 });
        if id % 100 == 0 {
            disk.flush();
        }
    }
    disk.flush();
    let mut ended = vec![false; COUNT as usize];
    let end = Instant::now() + Duration::from_secs(10);
    while ended.contains(&false) {
        assert!(Instant::now() < end, "the jobs have not completed within 10 s");
        while let Some((id, errno)) = disk.poll() {
            assert_eq!(
                (errno, std::mem::replace(&mut ended[id as usize], true)),
                (Errno::OK, false)
            );
        }
    }
    for id in 0..COUNT {
        let mut block = [0; 512];
        memory.read(id as usize * 512, &mut block).expect("the range is within the memory");
        assert_eq!(block, [(id * 37 % (SIZE / 512) % 251) as u8; 512]);
    }
    // When the disk is dropped, it waits for its jobs in flight.
    let command = command(Operation::Write, 0, 512);
    disk.submit(Job { id: 0, command, memory, offset: 0 });
    disk.flush();
}

#[test]
fn paths_without_disk_are_refused() {
    let alarm = Alarm::new().expect("descriptors are available");
    let open = |path: &str| Disk::open(path, alarm.bell());
    assert!(matches!(open("/nowhere/at/all"), Err(DiskError::File { .. })));
    assert!(matches!(open("/dev/null"), Err(DiskError::Kind { .. })));
    let empty = tempfile::NamedTempFile::new().expect("a file can be created");
    let refused = Disk::open(empty.path(), alarm.bell()).expect_err("the file is empty");
    assert!(matches!(refused, DiskError::Empty { length: 0, block: 512, .. }), "{refused}");
}

/// Tests nothing on file systems that have no extended attributes.
#[test]
fn file_stores_its_writers() {
    let directory = tempfile::tempdir().expect("a directory can be created");
    let path = directory.path().join("disk0");
    std::fs::write(&path, vec![0; SIZE as usize]).expect("the file can be written");
    let alarm = Alarm::new().expect("descriptors are available");
    let open = || Disk::open(&path, alarm.bell()).expect("the file can be opened");
    let Some(kept) = open().kept_writers() else { return };
    assert!(kept.is_empty());
    assert_eq!(open().keep_writers(b"one"), Ok(()));
    assert_eq!(open().kept_writers().as_deref(), Some(&b"one"[..]));
    // Storing the list of clients that write does not change the data of the file.
    assert!(std::fs::read(&path).expect("the file can be read").iter().all(|&byte| byte == 0));
    let memory = Disk::in_memory(SIZE).expect("memory is available");
    assert!(memory.kept_writers().is_none() && memory.keep_writers(b"one").is_err());
}

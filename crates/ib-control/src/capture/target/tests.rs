use super::*;

#[test]
fn rotated_files_are_named_as_by_dumpcap() {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(951_782_399);
    let name = |path: &str| numbered(Path::new(path), 12, time);
    assert_eq!(name("/a/b.pcapng"), Path::new("/a/b_00012_20000228235959.pcapng"));
    assert_eq!(name("b"), Path::new("b_00012_20000228235959"));
    assert_eq!(name("b.c.d"), Path::new("b.c_00012_20000228235959.d"));
}

fn pending(bytes: &[u8], packets: u64) -> Pending {
    Pending { bytes: bytes.to_vec(), packets, done: 0 }
}

#[test]
fn number_of_rotated_files_is_limited() {
    let place = tempfile::tempdir().expect("a directory");
    let rotation =
        Rotation { bytes: Some(10), files: Some(2), packets: Some(2), ..Rotation::default() };
    let target = Target::Files(place.path().join("a.pcapng"), rotation);
    let mut output = Output::open(target).expect("the target can be opened");
    for number in 0..5u8 {
        assert_eq!((output.room(), output.limit()), (2, Some(10)));
        output.write(&mut pending(&[number; 7], 1)).expect("room");
        assert_eq!((output.room(), output.is_full()), (1, false));
        output.write(&mut pending(&[number; 3], 1)).expect("room");
        assert!(output.is_full());
        output.next().expect("the next file can be opened");
    }
    output.write(&mut pending(&[9; 1], 1)).expect("room");
    assert!(!output.is_full(), "one packet");
    let mut found: Vec<_> = fs::read_dir(place.path())
        .expect("a directory")
        .map(|it| fs::read(it.expect("an entry").path()).expect("a file"))
        .collect();
    found.sort();
    assert_eq!(found, [vec![4; 10], vec![9; 1]]);
    assert_eq!(output.written(), (6, 51));
}

#[test]
fn file_in_use_is_refused_as_a_second_target() {
    let place = tempfile::tempdir().expect("a directory");
    let (path, other) = (place.path().join("a.pcapng"), place.path().join("b.pcapng"));
    let mut output = Output::open(Target::File(path.clone())).expect("the target can be opened");
    output.write(&mut pending(b"block", 1)).expect("room");
    fs::hard_link(&path, &other).expect("another name");
    for name in [&path, &other] {
        let error = Output::open(Target::File(name.clone())).expect_err("the file is in use");
        assert_eq!(error.source.kind(), ErrorKind::ResourceBusy);
    }
    assert_eq!(fs::read(&path).expect("a file"), b"block");
    drop(output);
    Output::open(Target::File(other)).expect("the file is not in use");
    assert_eq!(fs::read(&path).expect("a file"), b"");
    // Devices have no lock.
    let _both = [(); 2].map(|()| {
        Output::open(Target::File("/dev/null".into())).expect("a device can be opened twice")
    });
}

#[test]
fn ends_of_blocks_are_found() {
    let block = |length: u32| {
        let mut block = vec![6, 0, 0, 0];
        block.extend(length.to_le_bytes());
        block.resize(length as usize, 0);
        block
    };
    let blocks = [block(12), block(100), block(40)].concat();
    assert_eq!(block_ends(&blocks).collect::<Vec<_>>(), [12, 112, 152]);
    assert_eq!(block_ends(&[0; 16]).collect::<Vec<_>>(), [12]);
}

#[test]
fn incomplete_block_on_a_full_disk_is_removed() {
    // A device that is always full.
    let mut output =
        Output::open(Target::File("/dev/full".into())).expect("the device can be opened");
    let error = output.write(&mut pending(b"block", 1)).expect_err("the device is full");
    assert_eq!((error.name.as_str(), error.offset), ("/dev/full", Some(0)));
    assert_eq!(error.source.kind(), ErrorKind::StorageFull);
}

#[test]
fn unread_pipe_accepts_its_capacity() {
    let (reader, writer) = io::pipe().expect("a pipe");
    let mut output = Output::open(Target::Stream(writer.into())).expect("the target can be opened");
    let mut much = pending(&vec![1; 1 << 20], 1);
    output.write(&mut much).expect("a full pipe is not an error");
    assert!(!much.is_empty() && much.done > 4096, "{}", much.done);
    drop(reader);
    let error = output.write(&mut much).expect_err("the reader has disconnected");
    assert_eq!(error.source.kind(), ErrorKind::BrokenPipe);
}

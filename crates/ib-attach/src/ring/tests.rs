use std::thread;

use ib_types::ServiceLevel;

use super::*;

fn pair() -> [Rings; 2] {
    let files = Files::new().expect("memory");
    let copy = |file: &OwnedFd| file.try_clone().expect("files");
    let other = Files {
        memory: copy(&files.memory),
        bells: [copy(&files.bells[0]), copy(&files.bells[1])],
    };
    [
        Rings::open(files, Side::Simulator).expect("the memory is mapped"),
        Rings::open(other, Side::Client).expect("the memory is mapped"),
    ]
}

fn packet(slid: u16) -> Frame {
    Frame::Packet { slid, dlid: 2, sl: ServiceLevel::default(), grh: None }
}

#[test]
fn ring_returns_frames_in_order_up_to_its_slots() {
    let [mut simulator, mut client] = pair();
    let mut bytes = Vec::new();
    assert_eq!(simulator.take(&mut bytes), None);
    for round in 0..3_u16 {
        for number in 0..SLOTS as u16 {
            assert!(simulator.put(packet(number), &[round as u8; 100]));
            let length = usize::from(number) * 8;
            assert!(client.put_with(|slot| {
                slot[..length].fill(number as u8);
                Some((packet(number), length))
            }));
        }
        assert!(!simulator.put(packet(0), &[]) && simulator.room() == 0);
        assert!(!client.put_with(|_| panic!("called although the ring is full")));
        for number in 0..SLOTS as u16 {
            bytes.clear();
            assert_eq!(simulator.take(&mut bytes), Some(Ok(packet(number))));
            assert_eq!(bytes, vec![number as u8; usize::from(number) * 8]);
            assert!(client.take_with(|frame, bytes| {
                assert_eq!((frame, bytes), (packet(number), &[round as u8; 100][..]));
            }));
        }
        assert!(!client.take_with(|_, _| panic!("called although the ring is empty")));
    }
}

#[test]
fn longest_packet_fits_a_slot() {
    let [mut simulator, mut client] = pair();
    let longest: Vec<u8> = (0..super::super::frame::MAX_PAYLOAD).map(|at| at as u8).collect();
    assert!(simulator.put(packet(1), &longest));
    assert!(client.take_with(|_, bytes| assert_eq!(bytes, longest)));
    assert!(client.put_with(|slot| {
        slot[..longest.len()].copy_from_slice(&longest);
        Some((packet(2), longest.len()))
    }));
    let mut bytes = vec![9];
    assert_eq!(simulator.take(&mut bytes), Some(Ok(packet(2))));
    assert_eq!(bytes[1..], longest, "the frame is appended to the vector");
}

#[test]
fn arbitrary_client_writes_cause_no_invalid_access() {
    let [mut simulator, mut client] = pair();
    let mut bytes = Vec::new();
    // A frame of unknown kind, and frames whose length exceeds the slot or is too short.
    for (kind, length) in [(9, 8_u32), (1, u32::MAX), (1, 0)] {
        client.put_with(|_| Some((packet(1), 8)));
        let slot = client.memory.slot(0, client.put.wrapping_sub(1));
        // SAFETY: the slot is in the mapping.
        unsafe {
            slot.cast::<u32>().write_unaligned(length);
            slot.add(4).write(kind);
        }
        let taken = simulator.take(&mut bytes);
        let is_empty = (kind, length) == (1, 0);
        assert_eq!(taken, Some(if is_empty { Ok(packet(1)) } else { Err(Malformed) }));
        assert!(bytes.is_empty());
    }
    // Invalid counters.
    let numbers = [SLOTS + 1, u32::MAX, 1 << 31];
    for number in numbers {
        client.memory.number(0, PUT).store(simulator.taken.wrapping_add(number), Ordering::Release);
        assert_eq!(simulator.take(&mut bytes), Some(Err(Malformed)));
        assert_eq!(simulator.take(&mut bytes), None);
        client.memory.number(1, TAKEN).store(number, Ordering::Release);
        assert!(simulator.room() <= SLOTS);
        while simulator.put(packet(1), &[1; 64]) {}
    }
}

#[test]
fn memory_without_shrink_seal_is_refused() {
    let Files { bells, .. } = Files::new().expect("memory");
    let memory = memfd_create("loose", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&memory, LENGTH as u64).expect("memory");
    let error =
        Rings::open(Files { memory, bells }, Side::Client).err().expect("the memory is refused");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

/// Runs two threads that sleep whenever they can. Neither may miss a wake-up.
#[test]
fn sleeping_side_is_woken() {
    const COUNT: u32 = 200_000;
    let [mut simulator, mut client] = pair();
    let sleep = |rings: &mut Rings, wants_room| {
        if rings.may_sleep(true, wants_room) {
            let mut files = [ib_os::poll::watched(rings.bell(), false)];
            ib_os::poll::wait_any(&mut files, 10_000).expect("the process waits");
            assert_ne!(files[0].revents, 0, "a wake-up was missed");
        }
        rings.silence();
    };
    let other = thread::spawn(move || {
        let (mut taken, mut given) = (0, 0);
        while taken < COUNT || given < COUNT {
            let before = (taken, given);
            while taken < COUNT && client.take_with(|_, bytes| assert_eq!(bytes, [taken as u8; 8]))
            {
                taken += 1;
            }
            while given < COUNT
                && client.put_with(|slot| {
                    slot[..4].copy_from_slice(&given.to_ne_bytes());
                    Some((packet(1), 4))
                })
            {
                given += 1;
            }
            if (taken, given) == before {
                sleep(&mut client, given < COUNT);
            }
        }
        client.flush();
    });
    let (mut taken, mut given, mut bytes) = (0, 0, Vec::new());
    while taken < COUNT || given < COUNT {
        let before = (taken, given);
        while let Some(frame) = simulator.take(&mut bytes) {
            assert_eq!((frame, &bytes[..]), (Ok(packet(1)), &u32::to_ne_bytes(taken)[..]));
            bytes.clear();
            taken += 1;
        }
        while given < COUNT && simulator.put(packet(1), &[given as u8; 8]) {
            given += 1;
        }
        if (taken, given) == before {
            sleep(&mut simulator, given < COUNT);
        }
    }
    simulator.flush();
    other.join().expect("the thread has not panicked");
}

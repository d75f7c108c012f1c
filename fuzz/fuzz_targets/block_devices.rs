//! NBD and RNBD servers receive arbitrary requests.
//!
//! Checks that both servers pass only valid commands to devices, and do not panic.
#![no_main]

use ib_block::{Discard, Errno, Geometry, Operation, Origin};
use ib_nbd::{Export as NbdExport, Session};
use ib_rnbd::{Export, Response, Server};
use ib_rtrs::Direction;
use libfuzzer_sys::fuzz_target;

const SIZE: u64 = 1 << 20;

fuzz_target!(|input: (bool, Vec<Vec<u8>>)| {
    let geometry = Geometry {
        discard: Some(Discard { granularity: 512, alignment: 0, max: SIZE }),
        write_back: true,
        ..Geometry::new(SIZE, 512)
    };
    let (over_nbd, pieces) = input;
    if over_nbd {
        nbd(geometry, &pieces);
    } else {
        rnbd(geometry, &pieces);
    }
});

fn nbd(geometry: Geometry, pieces: &[Vec<u8>]) {
    let (name, description) = ("disk0".to_owned(), String::new());
    let export = NbdExport { name, description, geometry, preferred: 4096 };
    let mut session = Session::new([export].into());
    for mut piece in pieces.iter().map(|piece| &piece[..]) {
        while !piece.is_empty() {
            let Some(room) = session.room() else { return };
            let length = room.len().min(piece.len());
            room[..length].copy_from_slice(&piece[..length]);
            session.handle(length);
            piece = &piece[length..];
            while let Some(request) = session.poll_request() {
                assert_eq!(geometry.check(&request.command), Ok(()));
                let reads = request.command.operation == Operation::Read;
                let length = if reads { request.command.length as usize } else { 0 };
                let token = request.token;
                session.complete(token, Errno::OK, vec![0; length]);
            }
            let sent = session.unsent();
            session.sent(sent);
        }
    }
}

fn rnbd(geometry: Geometry, pieces: &[Vec<u8>]) {
    let mut server = Server::new(1);
    let origin = Origin { medium: 1, cache: 1 };
    server
        .offer(Export { name: "disk0".to_owned(), geometry, origin, writers: None })
        .expect("the name is valid and not in use");
    for (at, piece) in pieces.iter().enumerate() {
        let direction = if at % 2 == 0 { Direction::Read } else { Direction::Write };
        let room = piece.len() as u32 * 16;
        match server.handle(at as u32 % 3, (direction, room), piece) {
            Response::Execute(it) => {
                assert_eq!(geometry.check(&it.command), Ok(()));
                let has_data = matches!(it.command.operation, Operation::Read | Operation::Write);
                assert!(!has_data || it.command.length <= room.into());
                if at % 5 != 0 {
                    server.done(&it);
                }
            }
            Response::Immediate(_, bytes) => assert!(bytes.len() as u32 <= room),
        }
    }
}

//! A minimal NBD client.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const ZEROES: u16 = 6;

pub(crate) struct Program {
    stream: UnixStream,
    pub(crate) size: u64,
}

impl Program {
    /// Connects to the NBD server, and selects the export with this name.
    pub(crate) fn connect(socket: &str, device: &str) -> Self {
        let mut stream = UnixStream::connect(socket).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("the time limit can be set");
        let mut hello = [0; 18];
        stream.read_exact(&mut hello).expect("the server sends a greeting");
        let mut choice = 3_u32.to_be_bytes().to_vec();
        choice.extend(b"IHAVEOPT");
        choice.extend(1_u32.to_be_bytes());
        choice.extend((device.len() as u32).to_be_bytes());
        choice.extend(device.as_bytes());
        stream.write_all(&choice).expect("the peer accepts data");
        let mut answer = [0; 10];
        stream.read_exact(&mut answer).expect("the server exports the device");
        let size =
            u64::from_be_bytes(*answer.first_chunk().expect("the array has more than 8 bytes"));
        Self { stream, size }
    }

    /// Sends a request with data. Returns no data, or the error number of the reply.
    pub(crate) fn request(&mut self, kind: u16, offset: u64, data: &[u8]) -> Result<Vec<u8>, u32> {
        self.send(kind, offset, data.len() as u32, data);
        self.answer(0)
    }

    /// Sends a request without data for `length` bytes of the device. Returns no data, or the error number of the
    /// reply.
    pub(crate) fn length(&mut self, kind: u16, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        self.send(kind, offset, length, &[]);
        self.answer(0)
    }

    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        self.send(READ, offset, length, &[]);
        self.answer(length as usize)
    }

    fn send(&mut self, kind: u16, offset: u64, length: u32, data: &[u8]) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend([0, 0]);
        request.extend(kind.to_be_bytes());
        request.extend(7_u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request).expect("the peer accepts data");
    }

    fn answer(&mut self, length: usize) -> Result<Vec<u8>, u32> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).expect("the response is received");
        assert_eq!(head[..4], 0x6744_6698_u32.to_be_bytes());
        match u32::from_be_bytes(head[4..8].try_into().expect("the slice has 4 bytes")) {
            0 => {
                let mut data = vec![0; length];
                self.stream.read_exact(&mut data).expect("the data of the reply is received");
                Ok(data)
            }
            error => Err(error),
        }
    }
}

//! What is known of the routes that packets were sent on.

use std::collections::HashMap;

use ib_link::Route;

use crate::control::{Control, SocketAddress, address_of};
use crate::error::PushError;
use crate::icrc::Headers;
use crate::udp::UdpSocket;

/// What the packets of a route share.
pub(super) struct Prepared {
    pub(super) headers: Headers,
    pub(super) destination: SocketAddress,
    pub(super) control: Control,
}

/// The routes by number.
#[derive(Default)]
pub(super) struct Routes {
    numbers: HashMap<Route, usize>,
    prepared: Vec<Prepared>,
    /// The one that was asked for last.
    last: Option<(Route, usize)>,
}

/// How many routes are kept in mind.
const MOST: usize = 4096;

impl Routes {
    /// Returns the number of a route, after making it known.
    pub(super) fn number(
        &mut self,
        route: &Route,
        socket: &UdpSocket,
        peer_port: u16,
    ) -> Result<usize, PushError> {
        if let Some((last, number)) = &self.last
            && last == route
        {
            return Ok(*number);
        }
        let number = match self.numbers.get(route) {
            Some(&number) => number,
            None => self.add(route, socket, peer_port)?,
        };
        self.last = Some((*route, number));
        Ok(number)
    }

    pub(super) fn prepared(&self, number: usize) -> &Prepared {
        &self.prepared[number]
    }

    /// Returns true when there are so many that they should be forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.prepared.len() >= MOST
    }

    /// Forgets all; no number is valid any more.
    pub(super) fn clear(&mut self) {
        self.forget();
        self.prepared.clear();
    }

    /// Forgets which route has which number. The numbers stay valid.
    pub(super) fn forget(&mut self) {
        self.numbers.clear();
        self.last = None;
    }

    fn add(&mut self, route: &Route, socket: &UdpSocket, port: u16) -> Result<usize, PushError> {
        let (own, peer) = (address_of(route.source), address_of(route.destination));
        let is_own = socket.is_unspecified() || own == socket.address;
        if !is_own || own.is_ipv4() != socket.address.is_ipv4() || own.is_ipv4() != peer.is_ipv4() {
            return Err(PushError::Route { own, peer, socket: socket.address });
        }
        self.prepared.push(Prepared {
            headers: Headers::new(own, peer, socket.port, port),
            destination: socket.destination(own, peer, port),
            control: socket.control(own, peer, route),
        });
        self.numbers.insert(*route, self.prepared.len() - 1);
        Ok(self.prepared.len() - 1)
    }
}

//! Caches the headers, socket addresses and control messages for the packets of each route.

use std::collections::HashMap;

use ib_link::Route;

use crate::icrc::Headers;
use crate::options::PushError;
use crate::udp::UdpSocket;
use crate::udp::{Control, SocketAddress, address_of};

/// Headers, destination and control messages for the packets of a route.
pub(super) struct PreparedRoute {
    pub(super) headers: Headers,
    pub(super) destination: SocketAddress,
    pub(super) control: Control,
}

/// Cache of routes. Each route has a number.
#[derive(Default)]
pub(super) struct Routes {
    numbers: HashMap<Route, usize>,
    prepared: Vec<PreparedRoute>,
    /// The route of the last lookup, and its number.
    last: Option<(Route, usize)>,
}

/// Maximum number of cached routes.
const MOST: usize = 4096;

impl Routes {
    /// Returns the number of a route. Adds the route if it is not cached.
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

    pub(super) fn prepared(&self, number: usize) -> &PreparedRoute {
        &self.prepared[number]
    }

    /// Returns true if the cache is full and has to be cleared.
    pub(super) fn is_full(&self) -> bool {
        self.prepared.len() >= MOST
    }

    /// Removes all routes. Their numbers become invalid.
    pub(super) fn clear(&mut self) {
        self.forget();
        self.prepared.clear();
    }

    /// Removes all routes from the lookup index. Each route is prepared again when a later packet needs it. Packets
    /// in the buffer keep their route numbers, which remain valid.
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
        self.prepared.push(PreparedRoute {
            headers: Headers::new(own, peer, socket.port, port),
            destination: socket.destination(own, peer, port),
            control: socket.control(own, peer, route),
        });
        self.numbers.insert(*route, self.prepared.len() - 1);
        Ok(self.prepared.len() - 1)
    }
}

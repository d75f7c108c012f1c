//! Address cache: the owner of each address, and the LID and the route of each owner.
//!
//! Addresses and their owners (peers) are separate entries, so that a changed LID applies to all addresses of a peer.
//! Two arrays store the addresses and the peers, and hash tables find their indices. A peer with one address takes
//! about 150 bytes.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use hashbrown::HashTable;
use ib_types::{Gid, Instant};
use ib_wire::mad::sa::PathRecord;

use crate::Address;

mod slots;

use slots::{NONE, Slot, Slots};

/// An instant: tenths of a second since `Instant::ZERO`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(u32);

impl Timestamp {
    pub(crate) const fn of(now: Instant) -> Self {
        Self((now.as_nanos() / 100_000_000) as u32)
    }

    /// Returns the time from the timestamp until `now`.
    pub(crate) const fn age(self, now: Instant) -> Duration {
        let tenths = Self::of(now).0.saturating_sub(self.0);
        Duration::from_millis(tenths as u64 * 100)
    }
}

/// Route to a peer, from an SA response or preloaded from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SaRoute {
    pub(crate) learned: Timestamp,
    flow_label: u32,
    dlid: u16,
    slid: u16,
    p_key: u16,
    hop_limit: u8,
    traffic_class: u8,
    sl: u8,
    mtu: u8,
    rate: u8,
    life_time: u8,
    preference: u8,
    reversible: bool,
    /// True if the route is preloaded from a file.
    is_preloaded: bool,
}

impl SaRoute {
    /// Creates a route from a path record, of which it keeps only the fields that can differ between peers.
    pub(crate) fn of(path: &PathRecord, now: Instant) -> Self {
        let bytes = path.to_bytes();
        Self {
            learned: Timestamp::of(now),
            flow_label: path.flow_label,
            dlid: path.dlid,
            slid: path.slid,
            p_key: path.p_key.0,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            sl: path.sl,
            mtu: bytes[54],
            rate: bytes[55],
            life_time: bytes[56],
            preference: path.preference,
            reversible: path.reversible,
            is_preloaded: false,
        }
    }

    /// Returns true if the route is preloaded from a file.
    pub(crate) const fn is_preloaded(self) -> bool {
        self.is_preloaded
    }

    /// Returns the destination LID of the route.
    pub(crate) const fn dlid(self) -> u16 {
        self.dlid
    }

    /// Returns the service level of the route.
    pub(crate) const fn sl(self) -> u8 {
        self.sl
    }

    /// Returns a path record with the route and the given GIDs.
    pub(crate) fn path(&self, sgid: Gid, dgid: Gid) -> PathRecord {
        let mut bytes = PathRecord {
            dgid,
            sgid,
            dlid: self.dlid,
            slid: self.slid,
            flow_label: self.flow_label,
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            reversible: self.reversible,
            numb_path: 1,
            p_key: ib_types::PKey(self.p_key),
            sl: self.sl,
            preference: self.preference,
            ..PathRecord::zeroed()
        }
        .to_bytes();
        bytes[54..57].copy_from_slice(&[self.mtu, self.rate, self.life_time]);
        PathRecord::parse(&bytes)
    }
}

/// Group index of a peer that has no multicast group in common with the local endpoint.
pub(crate) const NO_GROUP: u8 = u8::MAX;

/// A port with cached addresses.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) gid: Gid,
    /// LID from which the peer sent messages; 0 if the peer sent none.
    pub(crate) lid: u16,
    /// Index of the most preferred multicast group that both the peer and the local endpoint have joined; [`NO_GROUP`]
    /// if none.
    pub(crate) group: u8,
    /// Number of addresses that the peer owns.
    addresses: u16,
    /// QP of the peer's ACM service; 0 if unknown.
    pub(crate) qpn: u32,
    /// Index of the first address in the peer's linked list; [`NONE`] if the list is empty.
    first: u32,
    /// Time at which the peer or the SA last confirmed the peer.
    pub(crate) confirmed: Timestamp,
    /// Time at which a client last requested the path to the peer.
    pub(crate) used: Timestamp,
    /// Main route: the SA route to one of the port's LIDs. The peer table stores routes to the other LIDs of the port.
    pub(crate) route: Option<SaRoute>,
}

impl Peer {
    /// Stores a route that the SA returned. This also confirms the peer, unless the peer has an ACM service.
    pub(crate) fn set_route(&mut self, path: &PathRecord, now: Instant) {
        self.route = Some(SaRoute::of(path, now));
        self.confirm_by_sa(now);
    }

    /// Sets the time of confirmation because the SA returned a path to the peer. Does nothing if the peer has an ACM
    /// service, because the messages of this service confirm the peer.
    pub(crate) fn confirm_by_sa(&mut self, now: Instant) {
        if self.qpn == 0 {
            self.confirmed = Timestamp::of(now);
        }
    }

    /// Stores a preloaded route to the peer.
    pub(crate) fn set_preloaded_route(&mut self, path: &PathRecord, now: Instant) {
        self.set_route(path, now);
        self.route = self.route.map(|route| SaRoute { is_preloaded: true, ..route });
    }
}

/// A cached address.
#[derive(Debug)]
struct CachedAddress {
    address: Address,
    /// Index of the peer that owns the address.
    peer: u32,
    /// Index of the next address in the owner's linked list; [`NONE`] at the end.
    next: u32,
    /// Time at which the owner last confirmed the address.
    seen: Timestamp,
    used: Timestamp,
    /// True if the address is preloaded from a file. Such an address does not expire.
    is_preloaded: bool,
}

/// Maximum number of cached addresses of a peer. Claims of the peer to more addresses are refused.
pub(crate) const MAX_ADDRESSES: u16 = 64;

/// Result of binding an address to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindResult {
    /// The address was not cached.
    New,
    /// The peer already owned the address. The call has confirmed it.
    Same,
    /// The address belongs to this other peer. The cache was not changed.
    Other(PeerKey),
    /// The peer has the maximum number of addresses, or the cache is full.
    TooMany,
}

/// Identifies a cached peer. After a peer was removed, another peer may get the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PeerKey(u32);

/// Cache of addresses and their owners.
#[derive(Debug)]
pub(crate) struct AddressCache {
    hasher: RandomState,
    addresses: Slots<CachedAddress>,
    by_address: HashTable<u32>,
    peers: Slots<Peer>,
    by_gid: HashTable<u32>,
    max_addresses: usize,
    /// Index of the last address that was sampled for an eviction.
    hand: u32,
}

/// Returns true for a GID or a LID, which the SM assigns, and false for a name or an IP address.
pub(crate) const fn is_assigned_by_sm(address: &Address) -> bool {
    matches!(address, Address::Gid(_) | Address::Lid(_))
}

/// Number of addresses that are compared to find the address to evict.
const SAMPLE: usize = 16;

impl AddressCache {
    /// Returns an empty cache for at most this number of addresses.
    pub(crate) fn new(max_addresses: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            addresses: Slots::new(),
            by_address: HashTable::new(),
            peers: Slots::new(),
            by_gid: HashTable::new(),
            max_addresses: max_addresses.max(1),
            hand: 0,
        }
    }

    /// Returns the number of cached addresses.
    pub(crate) const fn len(&self) -> usize {
        self.addresses.count
    }

    /// Returns the number of cached peers.
    pub(crate) const fn peers(&self) -> usize {
        self.peers.count
    }

    fn find(&self, address: &Address) -> Option<u32> {
        let hash = self.hasher.hash_one(address);
        let is_it = |&number: &u32| {
            self.addresses.get(number).is_some_and(|cached| cached.address == *address)
        };
        self.by_address.find(hash, is_it).copied()
    }

    /// Sets the maximum number of addresses, and evicts addresses until the cache fits. Preloaded addresses are never
    /// evicted.
    pub(crate) fn set_max(&mut self, max: usize) {
        self.max_addresses = max;
        while self.addresses.count > max && self.evict(PeerKey(NONE)) {}
    }

    /// Removes a preloaded address of the port with this GID.
    pub(crate) fn unbind_preloaded(&mut self, address: &Address, gid: Gid) {
        if let Some(number) = self.find(address)
            && let Some(cached) = self.addresses.get(number).filter(|cached| cached.is_preloaded)
            && self.peers.get(cached.peer).is_some_and(|peer| peer.gid == gid)
        {
            self.unbind_number(number);
        }
    }

    /// Removes preloaded routes. Preloaded GIDs remain cached, but expire like GIDs that were learned from messages.
    pub(crate) fn remove_preloaded_routes(&mut self) {
        self.for_each(|peer| peer.route = peer.route.filter(|route| !route.is_preloaded));
        for slot in &mut self.addresses.slots {
            if let Slot::Taken(cached) = slot
                && let Address::Gid(_) = cached.address
            {
                cached.is_preloaded = false;
            }
        }
    }

    /// Returns the owner of an address.
    pub(crate) fn lookup(&self, address: &Address) -> Option<PeerKey> {
        self.addresses.get(self.find(address)?).map(|cached| PeerKey(cached.peer))
    }

    /// Returns the owner of an address, and marks the address and the owner as used.
    pub(crate) fn use_address(&mut self, address: &Address, now: Instant) -> Option<PeerKey> {
        let number = self.find(address)?;
        let cached = self.addresses.get_mut(number)?;
        cached.used = Timestamp::of(now);
        let key = PeerKey(cached.peer);
        self.peers.get_mut(key.0)?.used = Timestamp::of(now);
        Some(key)
    }

    /// Returns the peer with this GID, and marks the peer as used.
    pub(crate) fn use_gid(&mut self, gid: Gid, now: Instant) -> Option<PeerKey> {
        let key = self.by_gid(gid)?;
        self.peers.get_mut(key.0)?.used = Timestamp::of(now);
        self.use_address(&Address::Gid(gid), now);
        Some(key)
    }

    /// Returns the time at which the owner last confirmed the address; `None` if the address is preloaded or not
    /// cached.
    pub(crate) fn seen(&self, address: &Address) -> Option<Timestamp> {
        let cached = self.addresses.get(self.find(address)?)?;
        (!cached.is_preloaded).then_some(cached.seen)
    }

    /// Returns the peer with this key.
    pub(crate) fn peer(&self, key: PeerKey) -> Option<&Peer> {
        self.peers.get(key.0)
    }

    /// Returns the peer with this key. The caller may change its fields other than the GID.
    pub(crate) fn peer_mut(&mut self, key: PeerKey) -> Option<&mut Peer> {
        self.peers.get_mut(key.0)
    }

    /// Returns the peer with this GID.
    pub(crate) fn by_gid(&self, gid: Gid) -> Option<PeerKey> {
        let hash = self.hasher.hash_one(gid);
        let is_it = |&number: &u32| self.peers.get(number).is_some_and(|peer| peer.gid == gid);
        self.by_gid.find(hash, is_it).map(|&number| PeerKey(number))
    }

    /// Returns the name or IP address with which checks query a peer. Prefers addresses that are not preloaded, and of
    /// these the most recently confirmed one. Never returns the address `but`.
    pub(crate) fn address_to_query(&self, key: PeerKey, but: Option<&Address>) -> Option<&Address> {
        let may_be = |it: &Address| !is_assigned_by_sm(it) && Some(it) != but;
        let answered = self.of_peer(key).filter(|cached| may_be(&cached.address));
        answered
            .max_by_key(|cached| (!cached.is_preloaded, cached.seen))
            .map(|cached| &cached.address)
    }

    /// Returns the address of the peer that has not been confirmed for the longest time. Considers only addresses that:
    ///
    /// * are not preloaded,
    /// * were last confirmed at least `age` ago,
    /// * were used after this confirmation,
    /// * and satisfy the predicate `which`.
    pub(crate) fn aging_address(
        &self,
        key: PeerKey,
        now: Instant,
        age: Duration,
        which: impl Fn(&Address) -> bool,
    ) -> Option<&Address> {
        let is_aging = |cached: &&CachedAddress| {
            let is_old = cached.used > cached.seen && cached.seen.age(now) >= age;
            !cached.is_preloaded && is_old && which(&cached.address)
        };
        let aging = self.of_peer(key).filter(is_aging);
        aging.min_by_key(|cached| cached.seen).map(|cached| &cached.address)
    }

    /// Confirms the GID and the LID from which a peer sent a message, if they are cached as addresses of the peer.
    pub(crate) fn confirm_source(&mut self, key: PeerKey, gid: Gid, lid: u16, now: Instant) {
        for address in [Address::Gid(gid), Address::Lid(lid)] {
            if let Some(number) = self.find(&address)
                && let Some(cached) = self.addresses.get_mut(number).filter(|it| it.peer == key.0)
            {
                cached.seen = Timestamp::of(now);
            }
        }
    }

    /// Returns the addresses of a peer.
    fn of_peer(&self, key: PeerKey) -> impl Iterator<Item = &CachedAddress> {
        let first = self.peers.get(key.0).and_then(|peer| self.addresses.get(peer.first));
        std::iter::successors(first, |cached| self.addresses.get(cached.next))
    }

    /// Returns the peer with this GID. If there is none, adds a peer without addresses.
    pub(crate) fn peer_of(&mut self, gid: Gid, now: Instant) -> PeerKey {
        if let Some(key) = self.by_gid(gid) {
            return key;
        }
        let stamp = Timestamp::of(now);
        let number = self.peers.insert(Peer {
            gid,
            lid: 0,
            group: NO_GROUP,
            addresses: 0,
            qpn: 0,
            first: NONE,
            confirmed: stamp,
            used: Timestamp::default(),
            route: None,
        });
        let (hasher, peers) = (&self.hasher, &self.peers);
        let rehash = |&number: &u32| {
            hasher.hash_one(peers.get(number).expect("the hash table holds indices of entries").gid)
        };
        self.by_gid.insert_unique(hasher.hash_one(gid), number, rehash);
        PeerKey(number)
    }

    /// Adds or confirms an address of a peer, unless another peer is the owner.
    pub(crate) fn bind(
        &mut self,
        address: &Address,
        key: PeerKey,
        now: Instant,
        is_preloaded: bool,
    ) -> BindResult {
        if let Some(number) = self.find(address) {
            let cached = self.addresses.get_mut(number).expect("the address was just found");
            if cached.peer != key.0 {
                return BindResult::Other(PeerKey(cached.peer));
            }
            cached.seen = Timestamp::of(now);
            cached.is_preloaded |= is_preloaded;
            return BindResult::Same;
        }
        if self.peers.get(key.0).is_none_or(|peer| peer.addresses >= MAX_ADDRESSES) {
            return BindResult::TooMany;
        }
        while self.addresses.count >= self.max_addresses {
            if !self.evict(key) {
                return BindResult::TooMany;
            }
        }
        let stamp = Timestamp::of(now);
        let peer = self.peers.get_mut(key.0).expect("the peer was found above");
        let number = self.addresses.insert(CachedAddress {
            address: address.clone(),
            peer: key.0,
            next: peer.first,
            seen: stamp,
            used: Timestamp::default(),
            is_preloaded,
        });
        peer.first = number;
        peer.addresses += 1;
        let (hasher, addresses) = (&self.hasher, &self.addresses);
        let rehash = |&number: &u32| {
            hasher.hash_one(
                &addresses.get(number).expect("the hash table holds indices of entries").address,
            )
        };
        self.by_address.insert_unique(hasher.hash_one(address), number, rehash);
        BindResult::New
    }

    /// Samples addresses of peers other than `but`, and removes the least recently used one. Returns false if no other
    /// peer has an address that can be removed.
    fn evict(&mut self, but: PeerKey) -> bool {
        let count = self.addresses.slots.len() as u32;
        let (mut victim, mut oldest, mut seen) = (None, None, 0);
        for _ in 0..count {
            self.hand = (self.hand + 1) % count;
            let Some(cached) = self.addresses.get(self.hand) else { continue };
            if cached.is_preloaded || cached.peer == but.0 {
                continue;
            }
            let age = cached.used.max(cached.seen);
            if oldest.is_none_or(|oldest| age < oldest) {
                (victim, oldest) = (Some(self.hand), Some(age));
            }
            seen += 1;
            if seen >= SAMPLE {
                break;
            }
        }
        victim.is_some_and(|number| self.unbind_number(number))
    }

    /// Removes an address, and also its owner if the owner has no other address. Returns false if the address was not
    /// cached.
    pub(crate) fn unbind(&mut self, address: &Address) -> bool {
        self.find(address).is_some_and(|number| self.unbind_number(number))
    }

    fn unbind_number(&mut self, number: u32) -> bool {
        let Some(cached) = self.addresses.get(number) else { return false };
        let (owner, next) = (cached.peer, cached.next);
        let hash = self.hasher.hash_one(&cached.address);
        if let Ok(entry) = self.by_address.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
        self.addresses.remove(number);
        let Some(peer) = self.peers.get_mut(owner) else { return true };
        peer.addresses -= 1;
        if peer.addresses == 0 {
            self.remove_peer(owner);
        } else if peer.first == number {
            peer.first = next;
        } else {
            let mut at = peer.first;
            while let Some(cached) = self.addresses.get_mut(at) {
                if cached.next == number {
                    cached.next = next;
                    break;
                }
                at = cached.next;
            }
        }
        true
    }

    fn remove_peer(&mut self, number: u32) {
        let Some(peer) = self.peers.remove(number) else { return };
        let hash = self.hasher.hash_one(peer.gid);
        if let Ok(entry) = self.by_gid.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
    }

    /// Removes a peer with its addresses. If some of the addresses are preloaded, these and the peer remain cached, and
    /// the peer loses its LID and route.
    pub(crate) fn remove(&mut self, key: PeerKey) {
        let Some(peer) = self.peers.get_mut(key.0) else { return };
        (peer.lid, peer.qpn, peer.group, peer.route) = (0, 0, NO_GROUP, None);
        let mut at = peer.first;
        if at == NONE {
            self.remove_peer(key.0);
        }
        while let Some(cached) = self.addresses.get(at) {
            let (number, is_preloaded) = (at, cached.is_preloaded);
            at = cached.next;
            if !is_preloaded {
                self.unbind_number(number);
            }
        }
    }

    /// Removes the peer if it has no address.
    pub(crate) fn remove_if_nameless(&mut self, key: PeerKey) {
        if self.peers.get(key.0).is_some_and(|peer| peer.addresses == 0) {
            self.remove_peer(key.0);
        }
    }

    /// Calls `look` with the peers in the `count` slots that follow the slot `from`, and advances `from`.
    pub(crate) fn sweep(&self, from: &mut u32, count: u32, mut look: impl FnMut(PeerKey, &Peer)) {
        let length = self.peers.slots.len() as u32;
        for _ in 0..count.min(length) {
            *from = (*from + 1) % length;
            if let Some(peer) = self.peers.get(*from) {
                look(PeerKey(*from), peer);
            }
        }
    }

    /// Returns the number of slots for peers, including the free ones.
    pub(crate) const fn slot_count(&self) -> usize {
        self.peers.slots.len()
    }

    /// Calls `with` for each address. The arguments are the address, its owner, the time of its last confirmation, and
    /// true if it is preloaded.
    pub(crate) fn each(&self, mut with: impl FnMut(&Address, &Peer, Timestamp, bool)) {
        for slot in &self.addresses.slots {
            if let Slot::Taken(cached) = slot
                && let Some(peer) = self.peers.get(cached.peer)
            {
                with(&cached.address, peer, cached.seen, cached.is_preloaded);
            }
        }
    }

    /// Removes all addresses except preloaded ones; returns the number of removed addresses.
    pub(crate) fn clear(&mut self) -> usize {
        let before = self.len();
        for number in 0..self.peers.slots.len() as u32 {
            self.remove(PeerKey(number));
        }
        before - self.len()
    }

    /// Calls `change` for each peer.
    pub(crate) fn for_each(&mut self, mut change: impl FnMut(&mut Peer)) {
        for slot in &mut self.peers.slots {
            if let Slot::Taken(peer) = slot {
                change(peer);
            }
        }
    }
}

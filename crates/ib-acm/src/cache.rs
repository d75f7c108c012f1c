//! What a service knows of others: which port has an address, and how that port is reached.
//!
//! Addresses and ports (peers) are held apart, so that a port that has moved has done so for all its addresses. Both lie
//! in arrays with tables of numbers beside them: some 150 bytes for each address of a port of its own.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use hashbrown::HashTable;
use ib_types::{Gid, Instant};
use ib_wire::mad::sa::PathRecord;

use crate::Address;

mod slots;

use slots::{Slot, Slots};

/// A moment in tenths of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u32);

impl Stamp {
    pub(crate) const fn of(now: Instant) -> Self {
        Self((now.as_nanos() / 100_000_000) as u32)
    }

    /// Returns how long ago it was.
    pub(crate) const fn age(self, now: Instant) -> Duration {
        let tenths = Self::of(now).0.saturating_sub(self.0);
        Duration::from_millis(tenths as u64 * 100)
    }
}

/// The route to a peer that subnet administration has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SaRoute {
    pub(crate) learned: Stamp,
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
    /// A file says it.
    is_of_file: bool,
}

impl SaRoute {
    /// Keeps what differs from peer to peer.
    pub(crate) fn of(path: &PathRecord, now: Instant) -> Self {
        let bytes = path.to_bytes();
        Self {
            learned: Stamp::of(now),
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
            is_of_file: false,
        }
    }

    /// Returns whether a file says it.
    pub(crate) const fn is_of_file(self) -> bool {
        self.is_of_file
    }

    /// Returns the LID that it leads to.
    pub(crate) const fn dlid(self) -> u16 {
        self.dlid
    }

    /// Returns its service level.
    pub(crate) const fn sl(self) -> u8 {
        self.sl
    }

    /// Returns the path between two GIDs.
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

/// No entry.
const NONE: u32 = u32::MAX;

/// The group that leads to a peer is not known.
pub(crate) const NO_GROUP: u8 = u8::MAX;

/// A port that has addresses.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) gid: Gid,
    /// Its LID; 0 where only subnet administration knows it.
    pub(crate) lid: u16,
    /// The best group that both sides can use, by its place in the own list; [`NO_GROUP`].
    pub(crate) group: u8,
    /// How many addresses it has.
    addresses: u16,
    /// Its queue pair; 0 where it is not known.
    pub(crate) qpn: u32,
    first: u32,
    /// When it was heard of last.
    pub(crate) confirmed: Stamp,
    /// When it was asked for last.
    pub(crate) used: Stamp,
    pub(crate) route: Option<SaRoute>,
}

impl Peer {
    /// Notes the route that subnet administration has told. Of a port without a service nobody else tells whether it is
    /// still there.
    pub(crate) fn set_route(&mut self, path: &PathRecord, now: Instant) {
        self.route = Some(SaRoute::of(path, now));
        self.told(now);
    }

    /// Notes that subnet administration has told a route to it.
    pub(crate) fn told(&mut self, now: Instant) {
        if self.qpn == 0 {
            self.confirmed = Stamp::of(now);
        }
    }

    /// Notes the route that a file tells.
    pub(crate) fn set_file_route(&mut self, path: &PathRecord, now: Instant) {
        self.set_route(path, now);
        self.route = self.route.map(|route| SaRoute { is_of_file: true, ..route });
    }
}

/// An address and whose it is.
#[derive(Debug)]
struct Known {
    address: Address,
    peer: u32,
    next: u32,
    /// When its owner said so last.
    seen: Stamp,
    used: Stamp,
    /// It was read from a file: it stays.
    is_preloaded: bool,
}

/// The most addresses of a peer: what says that it has more is not believed.
pub(crate) const MOST_ADDRESSES: u16 = 64;

/// What became of an address that a peer says it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Nobody had it.
    New,
    /// It had it before.
    Same,
    /// Another peer has it: nothing was changed.
    Other(PeerKey),
    /// It has enough.
    TooMany,
}

/// The number of a peer, which may be another's once it is gone: see [`Cache::peer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PeerKey(u32);

/// Addresses and peers.
#[derive(Debug)]
pub(crate) struct Cache {
    hasher: RandomState,
    known: Slots<Known>,
    by_address: HashTable<u32>,
    peers: Slots<Peer>,
    by_gid: HashTable<u32>,
    most: usize,
    hand: u32,
}

/// Returns whether an address is the fabric's to give, rather than a name or an IP address of a service.
pub(crate) const fn is_of_fabric(address: &Address) -> bool {
    matches!(address, Address::Gid(_) | Address::Lid(_))
}

/// How many addresses are looked at for one to give way.
const SAMPLE: usize = 16;

impl Cache {
    /// Returns an empty cache for so many addresses at most.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            known: Slots::new(),
            by_address: HashTable::new(),
            peers: Slots::new(),
            by_gid: HashTable::new(),
            most: most.max(1),
            hand: 0,
        }
    }

    /// Returns how many addresses are known.
    pub(crate) const fn len(&self) -> usize {
        self.known.count
    }

    /// Returns how many peers are known.
    pub(crate) const fn peers(&self) -> usize {
        self.peers.count
    }

    fn find(&self, address: &Address) -> Option<u32> {
        let hash = self.hasher.hash_one(address);
        let is_it =
            |&number: &u32| self.known.get(number).is_some_and(|known| known.address == *address);
        self.by_address.find(hash, is_it).copied()
    }

    /// Has it hold so many addresses at most; those used least go.
    pub(crate) fn set_most(&mut self, most: usize) {
        self.most = most;
        while self.known.count > most && self.evict(PeerKey(NONE)) {}
    }

    /// Forgets an address that a file says to be a port's, as the file does no more.
    pub(crate) fn unbind_preloaded(&mut self, address: &Address, gid: Gid) {
        if let Some(number) = self.find(address)
            && let Some(known) = self.known.get(number).filter(|known| known.is_preloaded)
            && self.peers.get(known.peer).is_some_and(|peer| peer.gid == gid)
        {
            self.unbind_number(number);
        }
    }

    /// Forgets the routes of files. GIDs that such a file has told stay, but no longer than others do.
    pub(crate) fn forget_file_routes(&mut self) {
        self.for_each(|peer| peer.route = peer.route.filter(|route| !route.is_of_file));
        for slot in &mut self.known.slots {
            if let Slot::Taken(known) = slot
                && let Address::Gid(_) = known.address
            {
                known.is_preloaded = false;
            }
        }
    }

    /// Returns whose an address is.
    pub(crate) fn lookup(&self, address: &Address) -> Option<PeerKey> {
        self.known.get(self.find(address)?).map(|known| PeerKey(known.peer))
    }

    /// Returns whose an address is, and notes that it was asked for.
    pub(crate) fn use_address(&mut self, address: &Address, now: Instant) -> Option<PeerKey> {
        let number = self.find(address)?;
        let known = self.known.get_mut(number)?;
        known.used = Stamp::of(now);
        let key = PeerKey(known.peer);
        self.peers.get_mut(key.0)?.used = Stamp::of(now);
        Some(key)
    }

    /// Returns the peer with a GID, and notes that it was asked for.
    pub(crate) fn use_gid(&mut self, gid: Gid, now: Instant) -> Option<PeerKey> {
        let key = self.by_gid(gid)?;
        self.peers.get_mut(key.0)?.used = Stamp::of(now);
        self.use_address(&Address::Gid(gid), now);
        Some(key)
    }

    /// Returns when the owner of an address said last that it is its own; `None` for what a file says, or nobody.
    pub(crate) fn seen(&self, address: &Address) -> Option<Stamp> {
        let known = self.known.get(self.find(address)?)?;
        (!known.is_preloaded).then_some(known.seen)
    }

    /// Returns a peer.
    pub(crate) fn peer(&self, key: PeerKey) -> Option<&Peer> {
        self.peers.get(key.0)
    }

    /// Returns a peer to be changed; its GID may not be.
    pub(crate) fn peer_mut(&mut self, key: PeerKey) -> Option<&mut Peer> {
        self.peers.get_mut(key.0)
    }

    /// Returns the peer with a GID.
    pub(crate) fn by_gid(&self, gid: Gid) -> Option<PeerKey> {
        let hash = self.hasher.hash_one(gid);
        let is_it = |&number: &u32| self.peers.get(number).is_some_and(|peer| peer.gid == gid);
        self.by_gid.find(hash, is_it).map(|&number| PeerKey(number))
    }

    /// Returns an address of a peer that every service answers for, a name or an IP address, but one: that which its owner
    /// has named last, and one that only a file names when there is no other.
    pub(crate) fn address_to_ask(&self, key: PeerKey, but: Option<&Address>) -> Option<&Address> {
        let may_be = |it: &Address| !is_of_fabric(it) && Some(it) != but;
        let answered = self.of_peer(key).filter(|known| may_be(&known.address));
        answered.max_by_key(|known| (!known.is_preloaded, known.seen)).map(|known| &known.address)
    }

    /// Returns an address of a peer, of those that are looked for, that was asked for since its owner has named it last,
    /// so long ago or longer: the oldest of these.
    pub(crate) fn aging_address(
        &self,
        key: PeerKey,
        now: Instant,
        age: Duration,
        which: impl Fn(&Address) -> bool,
    ) -> Option<&Address> {
        let is_aging = |known: &&Known| {
            let is_old = known.used > known.seen && known.seen.age(now) >= age;
            !known.is_preloaded && is_old && which(&known.address)
        };
        let aging = self.of_peer(key).filter(is_aging);
        aging.min_by_key(|known| known.seen).map(|known| &known.address)
    }

    /// Takes note that a peer has been heard of with its GID, from a LID: as far as these are among its addresses, they
    /// have been confirmed.
    pub(crate) fn heard_from(&mut self, key: PeerKey, gid: Gid, lid: u16, now: Instant) {
        for address in [Address::Gid(gid), Address::Lid(lid)] {
            if let Some(number) = self.find(&address)
                && let Some(known) = self.known.get_mut(number).filter(|it| it.peer == key.0)
            {
                known.seen = Stamp::of(now);
            }
        }
    }

    /// Returns the addresses of a peer.
    fn of_peer(&self, key: PeerKey) -> impl Iterator<Item = &Known> {
        let first = self.peers.get(key.0).and_then(|peer| self.known.get(peer.first));
        std::iter::successors(first, |known| self.known.get(known.next))
    }

    /// Returns the peer with a GID, a new one without an address perhaps.
    pub(crate) fn peer_of(&mut self, gid: Gid, now: Instant) -> PeerKey {
        if let Some(key) = self.by_gid(gid) {
            return key;
        }
        let stamp = Stamp::of(now);
        let number = self.peers.insert(Peer {
            gid,
            lid: 0,
            group: NO_GROUP,
            addresses: 0,
            qpn: 0,
            first: NONE,
            confirmed: stamp,
            used: Stamp::default(),
            route: None,
        });
        let (hasher, peers) = (&self.hasher, &self.peers);
        let rehash =
            |&number: &u32| hasher.hash_one(peers.get(number).expect("it is in the table").gid);
        self.by_gid.insert_unique(hasher.hash_one(gid), number, rehash);
        PeerKey(number)
    }

    /// Notes that a peer has an address, unless another one has it.
    pub(crate) fn bind(
        &mut self,
        address: &Address,
        key: PeerKey,
        now: Instant,
        is_preloaded: bool,
    ) -> Bound {
        if let Some(number) = self.find(address) {
            let known = self.known.get_mut(number).expect("it was found");
            if known.peer != key.0 {
                return Bound::Other(PeerKey(known.peer));
            }
            known.seen = Stamp::of(now);
            known.is_preloaded |= is_preloaded;
            return Bound::Same;
        }
        if self.peers.get(key.0).is_none_or(|peer| peer.addresses >= MOST_ADDRESSES) {
            return Bound::TooMany;
        }
        while self.known.count >= self.most {
            if !self.evict(key) {
                return Bound::TooMany;
            }
        }
        let stamp = Stamp::of(now);
        let peer = self.peers.get_mut(key.0).expect("looked at before");
        let number = self.known.insert(Known {
            address: address.clone(),
            peer: key.0,
            next: peer.first,
            seen: stamp,
            used: Stamp::default(),
            is_preloaded,
        });
        peer.first = number;
        peer.addresses += 1;
        let (hasher, known) = (&self.hasher, &self.known);
        let rehash = |&number: &u32| {
            hasher.hash_one(&known.get(number).expect("it is in the table").address)
        };
        self.by_address.insert_unique(hasher.hash_one(address), number, rehash);
        Bound::New
    }

    /// Forgets the address that was used least among some, but none of a peer; false when none can go.
    fn evict(&mut self, but: PeerKey) -> bool {
        let count = self.known.slots.len() as u32;
        let (mut victim, mut oldest, mut seen) = (None, None, 0);
        for _ in 0..count {
            self.hand = (self.hand + 1) % count;
            let Some(known) = self.known.get(self.hand) else { continue };
            if known.is_preloaded || known.peer == but.0 {
                continue;
            }
            let age = known.used.max(known.seen);
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

    /// Forgets an address, and its peer with the last one.
    pub(crate) fn unbind(&mut self, address: &Address) -> bool {
        self.find(address).is_some_and(|number| self.unbind_number(number))
    }

    fn unbind_number(&mut self, number: u32) -> bool {
        let Some(known) = self.known.get(number) else { return false };
        let (owner, next) = (known.peer, known.next);
        let hash = self.hasher.hash_one(&known.address);
        if let Ok(entry) = self.by_address.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
        self.known.remove(number);
        let Some(peer) = self.peers.get_mut(owner) else { return true };
        peer.addresses -= 1;
        if peer.addresses == 0 {
            self.forget_peer(owner);
        } else if peer.first == number {
            peer.first = next;
        } else {
            let mut at = peer.first;
            while let Some(known) = self.known.get_mut(at) {
                if known.next == number {
                    known.next = next;
                    break;
                }
                at = known.next;
            }
        }
        true
    }

    fn forget_peer(&mut self, number: u32) {
        let Some(peer) = self.peers.remove(number) else { return };
        let hash = self.hasher.hash_one(peer.gid);
        if let Ok(entry) = self.by_gid.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
    }

    /// Forgets a peer with all its addresses but those of files, which keep it without a LID.
    pub(crate) fn remove(&mut self, key: PeerKey) {
        let Some(peer) = self.peers.get_mut(key.0) else { return };
        (peer.lid, peer.qpn, peer.group, peer.route) = (0, 0, NO_GROUP, None);
        let mut at = peer.first;
        if at == NONE {
            self.forget_peer(key.0);
        }
        while let Some(known) = self.known.get(at) {
            let (number, is_preloaded) = (at, known.is_preloaded);
            at = known.next;
            if !is_preloaded {
                self.unbind_number(number);
            }
        }
    }

    /// Forgets a peer that has no address.
    pub(crate) fn remove_if_nameless(&mut self, key: PeerKey) {
        if self.peers.get(key.0).is_some_and(|peer| peer.addresses == 0) {
            self.forget_peer(key.0);
        }
    }

    /// Looks at so many places of the array of peers, from where it stopped last.
    pub(crate) fn sweep(&self, from: &mut u32, count: u32, mut look: impl FnMut(PeerKey, &Peer)) {
        let length = self.peers.slots.len() as u32;
        for _ in 0..count.min(length) {
            *from = (*from + 1) % length;
            if let Some(peer) = self.peers.get(*from) {
                look(PeerKey(*from), peer);
            }
        }
    }

    /// Returns how many places the array of peers has.
    pub(crate) const fn places(&self) -> usize {
        self.peers.slots.len()
    }

    /// Calls with all addresses: address, peer, when its owner was heard of, whether a file says it.
    pub(crate) fn each(&self, mut with: impl FnMut(&Address, &Peer, Stamp, bool)) {
        for slot in &self.known.slots {
            if let Slot::Taken(known) = slot
                && let Some(peer) = self.peers.get(known.peer)
            {
                with(&known.address, peer, known.seen, known.is_preloaded);
            }
        }
    }

    /// Forgets all but what files say; returns how many addresses are gone.
    pub(crate) fn clear(&mut self) -> usize {
        let before = self.len();
        for number in 0..self.peers.slots.len() as u32 {
            self.remove(PeerKey(number));
        }
        before - self.len()
    }

    /// Changes all peers.
    pub(crate) fn for_each(&mut self, mut change: impl FnMut(&mut Peer)) {
        for slot in &mut self.peers.slots {
            if let Slot::Taken(peer) = slot {
                change(peer);
            }
        }
    }
}

//! Up*/down* routing, whose shortest paths never go up after they went down.

use ib_types::ServiceLevel;
use rayon::prelude::*;

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions};
use crate::fill::fill;
use crate::hops::{HopMatrix, LinkClasses, NO_HOPS};
use crate::layers::Layers;
use crate::roots;
use crate::subnet::{Peer, Subnet, SwitchId};

/// The updn engine, which routes by the up*/down* rule.
///
/// Switches are ranked by their distance from the root switches, which are configured or detected. A link leads up to
/// the switch of lower rank or, if the ranks are equal, to the switch with the lower identifier. A path goes up
/// first and then down, so paths cannot form a credit loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpDown;

impl Engine for UpDown {
    fn kind(&self) -> EngineKind {
        EngineKind::UpDown
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError> {
        if subnet.switches().is_empty() {
            let message = "updn: the subnet has no switch; expected at least one";
            return Err(EngineError::Unsuitable(message.into()));
        }
        let mut notes = Vec::new();
        let weights = options.link_weights(subnet);
        let mut shortest = None;
        let roots = match &options.root_guids {
            Some(guids) => {
                let roots = roots::from_guids(subnet, guids, &mut notes);
                if roots.is_empty() {
                    return Err(EngineError::Unsuitable(
                        "updn: none of the root GUIDs is a switch of this subnet".into(),
                    ));
                }
                if options.connect_roots && roots.len() > 1 {
                    shortest = Some(HopMatrix::shortest(subnet, &weights));
                }
                roots
            }
            None => {
                let matrix = shortest.insert(HopMatrix::shortest(subnet, &weights));
                let detected = roots::detect(subnet, matrix);
                notes.extend(detected.histogram);
                if detected.roots.is_empty() {
                    return Err(EngineError::Unsuitable(format!(
                        "updn: no root switch was found; expected switches with over 90 % of the \
                         channel adapters at one distance and under 5 % at any other{}",
                        notes.iter().map(|line| format!("\n  {line}")).collect::<String>()
                    )));
                }
                let hosts = detected.roots.iter().filter(|&&id| {
                    subnet.peers(id).iter().any(|peer| matches!(peer, Peer::EndPort(_)))
                });
                let hosts = hosts.count();
                if hosts > 0 && subnet.switches().len() > 1 {
                    notes.push(format!(
                        "roots with hosts: {hosts} of the {} found, though the top of a tree has \
                         none; better give the roots by --root-guids",
                        detected.roots.len()
                    ));
                }
                detected.roots
            }
        };
        let connected = shortest.as_ref().filter(|_| options.connect_roots);
        // If roots are connected, the hops to a root are those of shortest paths. With link weights, these hops differ
        // from link to link, so every link then needs a class of its own (see `Links::new`).
        let share = connected.is_none() || weights.is_uniform();
        let links =
            Links::new(subnet, &ranks(subnet, &roots), &identifiers(subnet, options), share);
        let hops = matrix(subnet, links, &roots, connected);
        let lfts = fill(subnet, &hops, options, false);
        Ok(Routing {
            engine: self.kind(),
            lfts,
            hops,
            layers: Layers::uniform(ServiceLevel::default()),
            roots,
            ca_order: Vec::new(),
            notes,
        })
    }
}

/// The rank of a switch that is not connected to any root.
const UNRANKED: u32 = u32::MAX;

/// Returns the distance of every switch from the nearest root.
fn ranks(subnet: &Subnet<'_>, roots: &[SwitchId]) -> Vec<u32> {
    let mut ranks = vec![UNRANKED; subnet.switches().len()];
    let mut queue = roots.to_vec();
    for root in roots {
        ranks[root.index()] = 0;
    }
    let mut head = 0;
    while let Some(&switch) = queue.get(head) {
        head += 1;
        let below = ranks[switch.index()] + 1;
        for (_, other, _) in subnet.switch_links(switch) {
            if ranks[other.index()] > below {
                ranks[other.index()] = below;
                queue.push(other);
            }
        }
    }
    ranks
}

/// Returns the identifiers that break ties between equal ranks: the configured identifiers, or else the node GUIDs.
fn identifiers(subnet: &Subnet<'_>, options: &RoutingOptions) -> Vec<u64> {
    let mut ids: Vec<u64> = subnet.switches().iter().map(|switch| switch.guid.0).collect();
    for &(guid, id) in &options.updn_ids {
        if let Some(switch) = subnet.find_switch(guid) {
            ids[switch.index()] = id;
        }
    }
    ids
}

/// A link in the direction of a search, which is the opposite of the direction of packets.
#[derive(Clone, Copy)]
struct Link {
    /// The switch to which the search goes over the link.
    to: u16,
    /// The port of the switch `to` at which the link ends. Packets leave the switch through it.
    there: u8,
    /// True if the search goes up over the link.
    up: bool,
    /// Index of the link's class. Packets over any link of a class have the same number of hops to every destination.
    class: u32,
}

/// The links between switches, in three lists: all links, the links that lead down, and the links that lead up.
struct Links {
    all: Fan,
    down: Fan,
    up: Fan,
    classes: LinkClasses,
    /// True if all links that lead down from a switch have the same class, and all links that lead up have another one.
    share: bool,
}

/// A list of links, ordered by the switch at which they start.
struct Fan {
    /// By switch: the index in `links` of the switch's first link. The last element is the total number of links.
    first: Vec<u32>,
    links: Vec<Link>,
}

impl Fan {
    fn of(&self, switch: u16) -> &[Link] {
        let switch = usize::from(switch);
        &self.links[self.first[switch] as usize..self.first[switch + 1] as usize]
    }

    fn filtered(&self, keep: impl Fn(&Link) -> bool) -> Self {
        let mut some = Self { first: vec![0], links: Vec::new() };
        for switch in 1..self.first.len() {
            some.links.extend(self.of(switch as u16 - 1).iter().copied().filter(&keep));
            some.first.push(some.links.len() as u32);
        }
        some
    }
}

impl Links {
    /// Determines the direction and the class of every link.
    ///
    /// If `share` is true, the links from switch s form two classes: 2·s for links that lead down, and 2·s + 1 for
    /// links that lead up. The caller may set `share` only if every search finds the same hops over all links of such
    /// a class. If `share` is false, every link has its own class.
    fn new(subnet: &Subnet<'_>, ranks: &[u32], ids: &[u64], share: bool) -> Self {
        let mut all = Fan { first: vec![0], links: Vec::new() };
        for id in subnet.switch_ids() {
            for (_, other, there) in subnet.switch_links(id) {
                let (own, far) = (ranks[id.index()], ranks[other.index()]);
                let up = match own.cmp(&far) {
                    // The link between two roots leads up in both directions, so that each root can reach the switches
                    // behind the other one.
                    std::cmp::Ordering::Equal if own == 0 => true,
                    std::cmp::Ordering::Equal => ids[id.index()] > ids[other.index()],
                    order => order.is_gt(),
                };
                let shared = 2 * u32::from(id.0) + u32::from(up);
                let class = if share { shared } else { all.links.len() as u32 };
                all.links.push(Link { to: other.0, there, up, class });
            }
            all.first.push(all.links.len() as u32);
        }
        let count = if share { 2 * subnet.switches().len() } else { all.links.len() };
        let mut classes = LinkClasses::new(subnet, count);
        for link in &all.links {
            classes.set(SwitchId(link.to), link.there, link.class);
        }
        let (down, up) = (all.filtered(|link| !link.up), all.filtered(|link| link.up));
        Self { all, down, up, classes, share }
    }
}

/// Computes the hop matrix by a search from every destination switch, against the direction of packets.
fn matrix(
    subnet: &Subnet<'_>,
    links: Links,
    roots: &[SwitchId],
    connected: Option<&HopMatrix>,
) -> HopMatrix {
    let switches = subnet.switches().len();
    let width = switches + links.classes.count();
    let mut rows = vec![NO_HOPS; switches * width];
    rows.par_chunks_exact_mut(width.max(1)).enumerate().for_each_init(
        || Search { queue: Vec::new(), up: vec![false; switches], queued: vec![false; switches] },
        |search, (index, row)| {
            let root = SwitchId(index as u16);
            let (least, emitted) = row.split_at_mut(switches);
            if let Some(shortest) = connected.filter(|_| roots.contains(&root)) {
                for id in subnet.switch_ids() {
                    least[id.index()] = shortest.least(id, root);
                }
                for link in &links.all.links {
                    let hops = shortest.through(subnet, SwitchId(link.to), link.there, root);
                    emitted[link.class as usize] = hops;
                }
            }
            search.run(&links, root.0, least, emitted);
        },
    );
    HopMatrix::by_class(subnet, links.classes, &rows)
}

/// A breadth-first search from a destination switch.
///
/// A switch is queued again whenever the search improves the hops over a link to it. If the link that last queued the
/// switch leads down, the search leaves the switch only over links that lead down. OpenSM follows the same rule. The
/// rule affects the hops on fabrics that have links between switches of equal rank.
struct Search {
    queue: Vec<u16>,
    /// By switch: true if the link by which the switch was last queued leads up.
    up: Vec<bool>,
    /// By switch: true if the switch is queued and not yet processed.
    queued: Vec<bool>,
}

impl Search {
    /// Runs the search from the destination switch `root`. `least` gets the least number of hops from each switch to
    /// `root`. For each class of links, `emitted` gets the number of hops from [`Link::to`] over the link to `root`.
    fn run(&mut self, links: &Links, root: u16, least: &mut [u8], emitted: &mut [u8]) {
        least[usize::from(root)] = 0;
        self.queue.clear();
        self.queue.push(root);
        self.up[usize::from(root)] = true;
        let mut head = 0;
        while let Some(&switch) = self.queue.get(head) {
            head += 1;
            self.queued[usize::from(switch)] = false;
            let beyond = least[usize::from(switch)].saturating_add(1);
            let improves = |fan: &Fan| {
                // If links share a class, the first link of the class represents the others.
                let fan = fan.of(switch);
                let telling = if links.share { &fan[..fan.len().min(1)] } else { fan };
                telling.iter().any(|link| beyond < emitted[link.class as usize])
            };
            let down = improves(&links.down);
            let up = self.up[usize::from(switch)] && improves(&links.up);
            let onwards = match (down, up) {
                (false, false) => continue,
                (true, false) => links.down.of(switch),
                (false, true) => links.up.of(switch),
                (true, true) => links.all.of(switch),
            };
            for link in onwards {
                if beyond >= emitted[link.class as usize] {
                    continue;
                }
                let there = usize::from(link.to);
                least[there] = least[there].min(beyond);
                if !std::mem::replace(&mut self.queued[there], true) {
                    self.up[there] = link.up;
                    self.queue.push(link.to);
                }
            }
            if links.share {
                for (given, fan) in [(down, &links.down), (up, &links.up)] {
                    if given && let Some(link) = fan.of(switch).first() {
                        emitted[link.class as usize] = beyond;
                    }
                }
            } else {
                for link in onwards {
                    let slot = &mut emitted[link.class as usize];
                    *slot = beyond.min(*slot);
                }
            }
        }
    }
}

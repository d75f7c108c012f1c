//! Up*/down* routing: shortest paths that never go up after they went down.

use ib_types::ServiceLevel;
use rayon::prelude::*;

use super::{Engine, EngineError, EngineKind, Routing, RoutingOptions};
use crate::fill::fill;
use crate::hops::{HopMatrix, NO_HOPS};
use crate::layers::Layers;
use crate::roots;
use crate::subnet::{Peer, Subnet, SwitchId};

/// The updn engine.
///
/// Switches are ranked by their distance from the root switches, given or detected. A link leads
/// up to the lower rank; between equal ranks, to the higher identifier. Paths of ups followed by
/// downs cannot close a credit loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpDown;

impl Engine for UpDown {
    fn kind(&self) -> EngineKind {
        EngineKind::UpDown
    }

    fn route(&self, subnet: &Subnet<'_>, options: &RoutingOptions) -> Result<Routing, EngineError> {
        let mut notes = Vec::new();
        let weights = options.link_weights(subnet);
        let mut shortest = None;
        let roots = match &options.root_guids {
            Some(guids) => {
                let roots = roots::from_guids(subnet, guids, &mut notes);
                if roots.is_empty() {
                    return Err(EngineError::Unsuitable(
                        "updn: none of the root GUIDs given is a switch of this subnet".into(),
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
                detected.roots
            }
        };
        let links = Links::new(subnet, &ranks(subnet, &roots), &identifiers(subnet, options));
        let connected = shortest.as_ref().filter(|_| options.connect_roots);
        let hops = matrix(subnet, &links, &roots, connected);
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

/// The rank of a switch that no root reaches.
const UNRANKED: u32 = u32::MAX;

/// Returns every switch's distance from the nearest root.
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

/// Returns what breaks ties of rank: the node GUID, or what the user gave instead.
fn identifiers(subnet: &Subnet<'_>, options: &RoutingOptions) -> Vec<u64> {
    let mut ids: Vec<u64> = subnet.switches().iter().map(|switch| switch.guid.0).collect();
    for &(guid, id) in &options.updn_ids {
        if let Some(switch) = subnet.find_switch(guid) {
            ids[switch.index()] = id;
        }
    }
    ids
}

/// One end of a link between switches, as the search sees it.
#[derive(Clone, Copy)]
struct Link {
    /// The switch at the far end.
    to: u16,
    /// Where the far port's hops stand in a row of the matrix.
    slot: u32,
    /// Whether the step over the link leads up.
    up: bool,
}

struct Links {
    first: Vec<u32>,
    links: Vec<Link>,
    /// The same without the links that lead up, for switches that were reached downwards.
    first_down: Vec<u32>,
    down: Vec<Link>,
    /// Where each switch's hops start in a row: port 0 holds the least.
    offset: Vec<u32>,
}

impl Links {
    fn new(subnet: &Subnet<'_>, ranks: &[u32], ids: &[u64]) -> Self {
        let offset = HopMatrix::row_offsets(subnet);
        let mut all = Self {
            first: vec![0],
            links: Vec::new(),
            first_down: vec![0],
            down: Vec::new(),
            offset,
        };
        for id in subnet.switch_ids() {
            for (_, other, there) in subnet.switch_links(id) {
                let (own, far) = (ranks[id.index()], ranks[other.index()]);
                let up = match own.cmp(&far) {
                    // Two roots are joined upwards from either side, so that what lies behind
                    // both is found from both.
                    std::cmp::Ordering::Equal if own == 0 => true,
                    std::cmp::Ordering::Equal => ids[id.index()] > ids[other.index()],
                    order => order.is_gt(),
                };
                let slot = all.offset[other.index()] + u32::from(there);
                let link = Link { to: other.0, slot, up };
                all.links.push(link);
                all.down.extend((!up).then_some(link));
            }
            all.first.push(all.links.len() as u32);
            all.first_down.push(all.down.len() as u32);
        }
        all
    }

    /// Returns the links that a path may take on from a switch, by port.
    fn onwards(&self, switch: u16, up: bool) -> &[Link] {
        let (first, links) =
            if up { (&self.first, &self.links) } else { (&self.first_down, &self.down) };
        let switch = usize::from(switch);
        &links[first[switch] as usize..first[switch + 1] as usize]
    }
}

/// Searches from every switch over the links against the direction of travel.
fn matrix(
    subnet: &Subnet<'_>,
    links: &Links,
    roots: &[SwitchId],
    connected: Option<&HopMatrix>,
) -> HopMatrix {
    let switches = subnet.switches().len();
    let width = links.offset[switches] as usize;
    let mut rows = vec![NO_HOPS; switches * width];
    rows.par_chunks_exact_mut(width.max(1)).enumerate().for_each_init(
        || Search { queue: Vec::new(), up: vec![false; switches], queued: vec![false; switches] },
        |search, (index, row)| {
            let root = SwitchId(index as u16);
            if let Some(shortest) = connected.filter(|_| roots.contains(&root)) {
                copy_row(subnet, shortest, root, row);
            }
            search.run(links, root.0, row);
        },
    );
    HopMatrix::by_destination(subnet, rows)
}

/// Copies the shortest-path hops towards one switch into a row.
fn copy_row(subnet: &Subnet<'_>, shortest: &HopMatrix, to: SwitchId, row: &mut [u8]) {
    let mut slots = row.iter_mut();
    for id in subnet.switch_ids() {
        for (port, peer) in subnet.peers(id).iter().enumerate() {
            let slot = slots.next().expect("a row has a slot per port");
            if port == 0 || matches!(peer, Peer::Switch(..)) {
                *slot = shortest.through(subnet, id, port as u8, to);
            }
        }
    }
}

/// The breadth-first search of one destination.
///
/// A switch keeps the direction by which it was last put into the queue, and is put in again
/// whenever a link to it first gets its hops while it is not waiting. That decides which entries
/// exist on fabrics with links inside a rank.
struct Search {
    queue: Vec<u16>,
    up: Vec<bool>,
    queued: Vec<bool>,
}

impl Search {
    fn run(&mut self, links: &Links, root: u16, row: &mut [u8]) {
        let least = |switch: u16| links.offset[usize::from(switch)] as usize;
        row[least(root)] = 0;
        self.queue.clear();
        self.queue.push(root);
        self.up[usize::from(root)] = true;
        let mut head = 0;
        while let Some(&switch) = self.queue.get(head) {
            head += 1;
            self.queued[usize::from(switch)] = false;
            let up = self.up[usize::from(switch)];
            let beyond = row[least(switch)].saturating_add(1);
            for link in links.onwards(switch, up) {
                let slot = link.slot as usize;
                if beyond >= row[slot] {
                    continue;
                }
                row[slot] = beyond;
                let best = &mut row[least(link.to)];
                *best = beyond.min(*best);
                let there = usize::from(link.to);
                if !std::mem::replace(&mut self.queued[there], true) {
                    self.up[there] = link.up;
                    self.queue.push(link.to);
                }
            }
        }
    }
}

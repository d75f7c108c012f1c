//! What is asked and told, one request at a time, and how it ends.

use ib_link::Remote;
use ib_mad::{Completion, Failure, Message, OnLoss, Request};
use ib_types::Instant;
use ib_wire::mad::sm::{LinearForwardingBlock, PortInfo, SmInfo, SwitchInfo};
use ib_wire::mad::smp;
use ib_wire::mad::{AttributeId, Mad, Method, TransactionId};

use super::{Asked, Stage, SubnetManager};
use crate::configuration::Work;
use crate::fault::{Fault, PortName};

impl SubnetManager {
    /// Starts as many requests as may be under way.
    pub(super) fn fill(&mut self, now: Instant) {
        while self.requester.outstanding() < self.config.max_smps.max(1)
            && let Some((asked, mut mad)) = self.next_request(now)
        {
            mad.set_m_key(self.config.m_key);
            let request = Request {
                on_loss: OnLoss::Retry,
                ..Request::new(Remote::directed(), mad).with_timing(self.config.timing)
            };
            let transaction = self.requester.start(request).expect("Get and Set are answered");
            self.asked.insert(transaction, asked);
        }
    }

    fn next_request(&mut self, now: Instant) -> Option<(Asked, Mad)> {
        let own = self.info();
        let (stage, context) = self.split();
        let found = &*context.found;
        match stage {
            Stage::Discovering(discovery) => {
                discovery.next().map(|(probe, mad)| (Asked::Probe(probe), mad))
            }
            Stage::Configuring(configuration) | Stage::Grouping(configuration) => {
                configuration.next(&context).map(|(work, mad)| (Asked::Work(work), mad))
            }
            Stage::Looking { left, waiting } => {
                let asked = left.pop()?;
                *waiting += 1;
                let (id, modifier, route) = match asked {
                    Asked::Change(node) => (AttributeId::SWITCH_INFO, 0, &*found.node(node).route),
                    Asked::Audit { node, block } => {
                        let route = &*found.node(node).route;
                        (AttributeId::LINEAR_FORWARDING, u32::from(block), route)
                    }
                    Asked::State(place) => {
                        (AttributeId::PORT_INFO, u32::from(place.port), found.route(place))
                    }
                    _ => unreachable!("nothing else is looked at"),
                };
                let what = (id, modifier);
                let mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
                Some((asked, mad))
            }
            Stage::HandingOver { to, told } if !*told => {
                *told = true;
                let what = (AttributeId::SM_INFO, SmInfo::HANDOVER);
                let route = found.route(*to);
                let mut mad = smp::directed_request(Method::SET, TransactionId(0), what, route);
                mad.set_attribute(&own);
                Some((Asked::HandOver(*to), mad))
            }
            Stage::Standby { master, next, waiting, .. } if !*waiting && *next <= now => {
                *waiting = true;
                let (what, route) = ((AttributeId::SM_INFO, 0), found.route(*master));
                let mad = smp::directed_request(Method::GET, TransactionId(0), what, route);
                Some((Asked::Master(*master), mad))
            }
            _ => None,
        }
    }

    /// Passes on how requests ended.
    pub(super) fn collect(&mut self, now: Instant) {
        while let Some(completion) = self.requester.poll_event() {
            let Completion { transaction_id, attempts, result, .. } = completion;
            let Some(asked) = self.asked.remove(&transaction_id) else { continue };
            self.pace.smp_ended();
            if let Asked::Work(Work::Clear { node, .. } | Work::Lft { node, .. }) = asked
                && (attempts > 1 || result.is_err())
            {
                // A copy may still be on its way and undo what is written after it.
                self.doubtful.insert(self.found.node(node).info.node_guid);
            }
            if let Asked::Work(Work::Switch(node)) = asked
                && result.is_ok()
                && let known = self.found.node(node)
                && known.switch.is_some_and(|switch| switch.port_state_change)
            {
                self.uncertain.insert(known.info.node_guid, 1);
            }
            self.ended(now, asked, result);
        }
        self.advance(now);
    }

    fn ended(&mut self, now: Instant, asked: Asked, result: Result<Message, Failure>) {
        let (stage, mut context) = self.split();
        match (stage, asked) {
            (Stage::Discovering(discovery), Asked::Probe(probe)) => {
                discovery.handle(probe, result, context.tables);
            }
            (
                Stage::Configuring(configuration) | Stage::Grouping(configuration),
                Asked::Work(work),
            ) => configuration.handle(work, result, &mut context),
            (Stage::Looking { waiting, .. }, Asked::Change(node)) => {
                *waiting -= 1;
                let info = result.ok().and_then(|answer| answer.mad().attribute::<SwitchInfo>());
                let known = context.found.node(node);
                let guid = known.info.node_guid;
                let top = known.switch.map(|switch| switch.linear_fdb_top);
                // A switch with another highest LID was reset or is managed by somebody else.
                match info.filter(|info| top == Some(info.linear_fdb_top)) {
                    None => {
                        let what = "does not answer as it did: it was reset, or has gone";
                        let why = format!("{} {what}", self.names(&[node]));
                        self.spoil(why);
                    }
                    Some(info) if info.port_state_change => _ = self.changed.insert(guid),
                    Some(_) => {}
                }
            }
            (Stage::Looking { waiting, .. }, Asked::Audit { node, block }) => {
                *waiting -= 1;
                let read = result.ok().and_then(|answer| answer.mad().attribute());
                let Some(LinearForwardingBlock { ports }) = read else {
                    let why = format!("{} does not answer", self.names(&[node]));
                    return self.spoil(why);
                };
                let found = &*context.found;
                let table = context.tables.entry(found.node(node).info.node_guid).or_default();
                if table.block(block.into()).is_some_and(|known| *known != ports) {
                    table.set(block.into(), &ports);
                    context.read_back.insert(found.node(node).info.node_guid);
                    let at = PortName { port: None, ..found.name(node.at(0)) };
                    let why = format!("the table of {} was changed", self.names(&[node]));
                    self.spoil(why);
                    self.report(vec![Fault::TableChanged { at, block }]);
                }
            }
            (Stage::Looking { waiting, .. }, Asked::State(place)) => {
                *waiting -= 1;
                let read = result.ok().and_then(|answer| answer.mad().attribute::<PortInfo>());
                let known = context.found.port(place).info.as_deref();
                let is_same = |read: &PortInfo, known: &PortInfo| {
                    (read.port_state, read.lid) == (known.port_state, known.lid)
                };
                if let (Some(read), Some(known)) = (read, known)
                    && !is_same(&read, known)
                {
                    // Its link was down for so short a time that nobody has told.
                    let why = format!("a port of {} was reset", self.names(&[place.node]));
                    self.spoil(why);
                }
            }
            (Stage::Standby { .. }, Asked::Master(place)) => self.heard(now, place, result),
            (Stage::HandingOver { .. }, Asked::HandOver(place)) => self.handed(now, place, &result),
            // What was asked before the manager was told to do something else.
            _ => {}
        }
    }
}

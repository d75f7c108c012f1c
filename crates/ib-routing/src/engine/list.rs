//! A list of engines that are tried in order.

use std::fmt;
use std::str::FromStr;

use super::{Engine, EngineError, EngineKind, ParseEngineError, Routing, RoutingOptions};
use crate::subnet::Subnet;

/// A list of engines to try in order. The last one is minhop, unless the user excludes it.
///
/// The notation is OpenSM's: names separated by commas or blanks. The word `no_fallback` excludes minhop at the end.
/// The word `auto` alone stands for [`EngineList::default`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineList {
    engines: Vec<EngineKind>,
    fallback: bool,
    /// True if the user specified `auto` or no engine.
    is_default: bool,
}

/// The word that stands for the default list.
const AUTO: &str = "auto";

impl Default for EngineList {
    /// Returns the default list, which is minhop. [`Self::candidates`] adds further engines to it.
    fn default() -> Self {
        Self { engines: vec![EngineKind::MinHop], fallback: true, is_default: true }
    }
}

impl From<EngineKind> for EngineList {
    fn from(engine: EngineKind) -> Self {
        Self { engines: vec![engine], fallback: true, is_default: false }
    }
}

impl FromStr for EngineList {
    type Err = ParseEngineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == AUTO {
            return Ok(Self::default());
        }
        let mut list = Self { engines: Vec::new(), fallback: true, is_default: false };
        for word in text.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
            if word == "no_fallback" {
                list.fallback = false;
            } else {
                list.engines.push(word.parse()?);
            }
        }
        if list.engines.is_empty() {
            return Err(ParseEngineError::None(text.to_owned()));
        }
        Ok(list)
    }
}

impl fmt::Display for EngineList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_default {
            return f.write_str(AUTO);
        }
        let names: Vec<&str> = self.engines.iter().map(|engine| engine.name()).collect();
        f.write_str(&names.join(","))?;
        f.write_str(if self.fallback { "" } else { ",no_fallback" })
    }
}

/// An engine that did not route the subnet, and the reason why.
pub type Refusal = (EngineKind, EngineError);

/// Result of trying the engines of a list.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result of the first engine that routed the subnet.
    pub routing: Routing,
    /// The engines that were tried before and did not route the subnet.
    pub refusals: Vec<Refusal>,
}

/// Error: no engine of the list could route the subnet.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no routing engine could serve the subnet:{}", describe(refusals))]
pub struct NoEngine {
    /// The engines that were tried, with their errors.
    pub refusals: Vec<Refusal>,
}

fn describe(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| format!("\n  {}: {}", refusal.0, reason(refusal))).collect()
}

/// Returns the reason why an engine did not route the subnet, without the engine's name.
#[must_use]
pub fn reason((engine, error): &Refusal) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{engine}: ")).unwrap_or(&text).to_owned()
}

impl EngineList {
    /// Returns the engines of the list in order, without the minhop that [`Self::candidates`] appends.
    #[must_use]
    pub fn engines(&self) -> &[EngineKind] {
        &self.engines
    }

    /// Returns true if the user specified `auto` or no engine.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.is_default
    }

    /// Returns the engines whose tables the SM may program, in order: the engines of the list, then minhop unless
    /// `no_fallback` is given. For the default list, updn and lash follow, because they avoid credit loops.
    #[must_use]
    pub fn candidates(&self) -> Vec<EngineKind> {
        let mut candidates = self.engines.clone();
        if self.fallback {
            candidates.push(EngineKind::MinHop);
        }
        if self.is_default {
            candidates.extend([EngineKind::UpDown, EngineKind::Lash]);
        }
        let mut seen = std::collections::BTreeSet::new();
        candidates.retain(|&engine| seen.insert(engine));
        candidates
    }

    /// Routes the subnet with the first engine of the list that supports it.
    ///
    /// # Errors
    /// Fails if no engine supports the subnet. The error has the reason of each engine.
    pub fn route(
        &self,
        subnet: &Subnet<'_>,
        options: &RoutingOptions,
    ) -> Result<Outcome, NoEngine> {
        let last = self.fallback && !self.engines.contains(&EngineKind::MinHop);
        let fallback = last.then_some(EngineKind::MinHop);
        let mut refusals = Vec::new();
        for kind in self.engines.iter().copied().chain(fallback) {
            match engine(kind).route(subnet, options) {
                Ok(routing) => return Ok(Outcome { routing, refusals }),
                Err(error) => refusals.push((kind, error)),
            }
        }
        Err(NoEngine { refusals })
    }
}

/// Returns the engine of the given kind.
#[must_use]
pub fn engine(kind: EngineKind) -> &'static dyn Engine {
    match kind {
        EngineKind::MinHop => &super::minhop::MinHop,
        EngineKind::Lash => &super::lash::Lash,
        EngineKind::FatTree => &super::ftree::FatTree,
        EngineKind::UpDown => &super::updn::UpDown,
        EngineKind::Dor => &super::dor::Dor,
        EngineKind::File => &super::file::FileTables,
    }
}

#[cfg(test)]
mod tests;

//! A list of engines that are tried in order.

use std::fmt;
use std::str::FromStr;

use super::{Engine, EngineError, EngineKind, ParseEngineError, Routing, RoutingOptions};
use crate::subnet::Subnet;

/// The engines to try in order, followed by minhop unless excluded.
///
/// Parsed from OpenSM's notation: names separated by commas or blanks; `no_fallback` excludes
/// minhop at the end. The word `auto` alone is [`EngineList::default`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineList {
    engines: Vec<EngineKind>,
    fallback: bool,
    /// True if the user specified no engine.
    is_default: bool,
}

/// The name of the default list.
const AUTO: &str = "auto";

impl Default for EngineList {
    /// Returns the default list: minhop, which [`Self::candidates`] extends.
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

/// An engine that did not route the subnet, and the reason.
pub type Refusal = (EngineKind, EngineError);

/// Result of a list of engines.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The tables of the first successful engine.
    pub routing: Routing,
    /// The engines that failed before it.
    pub refusals: Vec<Refusal>,
}

/// Error of a list in which all engines failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no routing engine could serve the subnet:{}", describe(refusals))]
pub struct NoEngine {
    /// The engines and their errors.
    pub refusals: Vec<Refusal>,
}

fn describe(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| format!("\n  {}: {}", refusal.0, reason(refusal))).collect()
}

/// Returns the reason of a refusal, without the name of the engine.
#[must_use]
pub fn reason((engine, error): &Refusal) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("{engine}: ")).unwrap_or(&text).to_owned()
}

impl EngineList {
    /// Returns the engines in order, without the fallback.
    #[must_use]
    pub fn engines(&self) -> &[EngineKind] {
        &self.engines
    }

    /// Returns true if the user specified no engine.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.is_default
    }

    /// Returns the engines whose tables may be programmed, in order: those of the list, then minhop unless
    /// `no_fallback` is given. With the default list, updn and lash follow, which avoid credit loops.
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

    /// Routes the subnet with the first engine that supports it.
    ///
    /// # Errors
    /// Fails if no engine supports the subnet, with the reason of each.
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

/// Returns the engine of a kind.
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

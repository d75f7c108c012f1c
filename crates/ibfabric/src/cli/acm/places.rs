//! The ports of an ACM service: `--attach`, `--node` and `--umad`, each of which may be repeated.

use std::collections::BTreeMap;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

pub use ib_daemons::acm::PortSelection;

use crate::cli::values::simulator;

/// The ports on a command line, in the order in which they occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(pub Vec<PortSelection>);

/// The options as clap parses them: one list per option. The lists do not contain the order of different options.
#[derive(Debug, Args)]
struct Options {
    /// Attaches to ports of the running `ibfabric sim` with this name. May be repeated [default name: the value of
    /// `IBSIM_SOCKNAME`, or sim].
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    attach: Vec<String>,
    /// Node of the simulated fabric that the preceding --attach selects, or the only --attach. `:PORT` selects a port
    /// other than the first. May be repeated [default: first host].
    #[arg(long, value_name = "NODE[:PORT]", requires = "attach")]
    node: Vec<String>,
    /// Port of a local HCA through umad, such as `mlx5_0:1`. Without a port, the service uses all ports of the HCA.
    /// Without a name, it uses all InfiniBand ports of the machine, as ibacm does. May be repeated. umad provides no
    /// queue pairs. So the service resolves addresses from files only, and queries the SA for paths.
    #[arg(long, value_name = "DEV[:PORT]", num_args = 0..=1, default_missing_value = "")]
    umad: Vec<String>,
}

impl Args for Places {
    fn augment_args(command: Command) -> Command {
        Options::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Options::augment_args_for_update(command)
    }
}

impl FromArgMatches for Places {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let options = Options::from_arg_matches(matches)?;
        let at = |id| matches.indices_of(id).into_iter().flatten();
        let simulators: BTreeMap<usize, String> =
            at("attach").zip(options.attach.iter().map(|name| simulator(name))).collect();
        let mut places: BTreeMap<usize, PortSelection> = BTreeMap::new();
        let mut with_nodes = Vec::new();
        for (index, node) in at("node").zip(&options.node) {
            let before = simulators.range(..index).next_back();
            let found =
                before.or_else(|| simulators.first_key_value().filter(|_| simulators.len() == 1));
            let Some((&of, simulator)) = found else {
                let why = format!(
                    "--node {node}: expected the --attach of its simulator before --node\n"
                );
                return Err(Error::raw(ErrorKind::ArgumentConflict, why));
            };
            with_nodes.push(of);
            let (simulator, node) = (simulator.clone(), Some(node.clone()));
            places.insert(index, PortSelection::Simulated { simulator, node });
        }
        for (index, simulator) in simulators {
            if !with_nodes.contains(&index) {
                places.insert(index, PortSelection::Simulated { simulator, node: None });
            }
        }
        places.extend(
            at("umad").zip(options.umad).map(|(index, name)| (index, PortSelection::Umad(name))),
        );
        Ok(Self(places.into_values().collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        places: Places,
    }

    fn places(line: &str) -> Result<Vec<PortSelection>, String> {
        let words = std::iter::once("acm").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.places.0).map_err(|error| error.to_string())
    }

    fn simulated(simulator: &str, node: Option<&str>) -> PortSelection {
        PortSelection::Simulated { simulator: simulator.to_owned(), node: node.map(str::to_owned) }
    }

    #[test]
    fn node_belongs_to_preceding_simulator() {
        assert_eq!(places(""), Ok(Vec::new()));
        assert_eq!(places("--attach a"), Ok(vec![simulated("a", None)]));
        assert_eq!(places("--node x --attach a"), Ok(vec![simulated("a", Some("x"))]));
        let both = vec![simulated("a", Some("x")), simulated("a", Some("y:2"))];
        assert_eq!(places("--attach a --node x --node y:2"), Ok(both));
        let umad = |name: &str| PortSelection::Umad(name.to_owned());
        let mixed = vec![
            umad("mlx5_0:1"),
            simulated("a", Some("x")),
            simulated("b", None),
            umad(""),
            simulated("c", Some("y")),
        ];
        let line = "--umad mlx5_0:1 --attach a --node x --attach b --umad --attach c --node y";
        assert_eq!(places(line), Ok(mixed));
        let error = places("--node x --attach a --attach b").expect_err("`--node` is ambiguous");
        assert!(error.contains("--node x: expected the --attach"), "{error}");
        assert!(places("--node x").is_err());
    }
}

//! The fabric graph, and the files that describe one.
//!
//! | module | holds |
//! |---|---|
//! | [`fabric`] | [`Fabric`]: nodes, ports and links, checked as they are added |
//! | [`generate`] | fabrics made from a kind and a few numbers: trees, tori, cubes, dragonflies |
//! | [`read`](mod@read) | readers of ibnetdiscover output, ibsim net files and OpenSM's subnet list |
//! | [`write`](mod@write) | writers of the same |
//! | [`text`] | reading lines of text with the place of what is wrong |
//! | [`name_map`] | node-name-map files, for [`Fabric::rename`] |
//! | [`guid_list`] | files of one GUID a line: roots, compute nodes, ports to ignore |
//! | [`error`] | [`FabricError`] and [`ParseError`] (file, line, column, what was expected) |
//!
//! ```
//! use ib_topology::{Fabric, LinkRate, NodeSpec};
//! use ib_types::{Guid, NodeKind};
//!
//! let mut fabric = Fabric::new();
//! let leaf = fabric.add_node(NodeSpec::new(NodeKind::Switch, "leaf", Guid(0x200), 36))?;
//! let host = fabric.add_node(NodeSpec::new(NodeKind::ChannelAdapter, "host", Guid(0x100), 1))?;
//! fabric.set_port_guid(host, 1, Guid(0x101))?;
//! fabric.connect((host, 1), (leaf, 7), LinkRate::DEFAULT)?;
//! assert_eq!(fabric.link_count(), 1);
//! # Ok::<(), ib_topology::FabricError>(())
//! ```

pub mod error;
pub mod fabric;
pub mod generate;
pub mod guid_list;
pub mod name_map;
pub mod read;
pub mod text;
pub mod write;

pub use error::{FabricError, ParseError};
pub use fabric::{Fabric, LinkRate, Node, NodeId, NodeSpec, Port, PortId};
pub use read::{Format, read, read_as};
pub use write::{WriteError, write};

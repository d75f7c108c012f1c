//! The fabric graph, and readers, writers and generators of fabric files.
//!
//! A [`Fabric`] contains nodes, ports and links. It is read from ibnetdiscover output, an ibsim net file or OpenSM's
//! subnet list, or generated from a few parameters.
//!
//! | module | contents |
//! |---|---|
//! | [`fabric`] | [`Fabric`]: nodes, ports and links, checked when they are added |
//! | [`generate`] | generators of fat trees, tori, meshes, hypercubes, dragonflies and random graphs |
//! | [`read`](mod@read) | readers of ibnetdiscover output, ibsim net files and OpenSM's subnet list |
//! | [`write`](mod@write) | writers of the same formats |
//! | [`text`] | the line parser that all readers use; its errors have line and column |
//! | [`name_map`] | node-name-map files, for [`Fabric::rename`] |
//! | [`guid_list`] | GUID lists: root switches, compute nodes, ports to ignore |
//! | [`error`] | [`FabricError`] and [`ParseError`] (file, line, column, text expected) |
//!
//! # Example
//! ```
//! use ib_topology::generate::{Kind, Options, generate};
//! use ib_topology::{Format, read, write};
//!
//! let kind = Kind::parse("fat-tree", &["8", "hosts=2"])?;
//! let fabric = generate(&kind, &Options::default())?;
//!
//! let mut file = Vec::new();
//! write(&fabric, Format::Ibnetdiscover, &mut file)?;
//! assert_eq!(read("fat-tree.topo", &file)?, fabric);
//! # Ok::<(), Box<dyn std::error::Error>>(())
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

//! C interface of the ACM client: `libibfabric_acm.so`, with the header `include/ibfabric_acm.h`.
//!
//! C programs use the library to resolve names and addresses to path records, and to read counters
//! and endpoints of the ACM service. All calls block. Calls on one connection are serialized.
//! Panics do not reach the program.
//!
//! ```c
//! struct ib_acm_client *client = ib_acm_connect(NULL);
//! struct ib_acm_path *paths;
//! size_t count;
//! if (client && ib_acm_resolve_name(client, NULL, "node7", &paths, &count, 0) == 0) {
//!     printf("LID %u\n", ntohs(paths[0].record.dlid));
//!     ib_acm_free_paths(paths);
//! }
//! ib_acm_disconnect(client);
//! ```
//!
//! The header documents the functions.
//!
//! | module | contents |
//! |---|---|
//! | `resolve` | resolution of names, addresses and paths |
//! | `perf` | queries of counters |
//! | `endpoint` | queries of endpoints |
//! | `handle` | connections to the service |
//! | `arguments` | conversion of arguments |
//! | `arrays` | result arrays in memory that the C library allocates |
//! | `error` | `errno`, and the text of the last error |
//!
//! The crate is empty on systems other than Linux.

#![cfg(target_os = "linux")]

mod arguments;
mod arrays;
mod endpoint;
mod error;
mod handle;
mod perf;
mod resolve;

pub use endpoint::{Endpoint, Text, ib_acm_free_addresses, ib_acm_query_endpoint};
pub use error::ib_acm_error_string;
pub use handle::{
    ClientHandle, ib_acm_connect, ib_acm_connect_tcp, ib_acm_disconnect, ib_acm_set_patience,
};
pub use perf::{ib_acm_free_perf, ib_acm_query_perf};
pub use resolve::{
    Path, PathRecordBytes, ib_acm_free_paths, ib_acm_resolve_ip, ib_acm_resolve_name,
    ib_acm_resolve_path,
};

//! The C interface to the client of ACM's service: `libibfabric_acm.so`, with `include/ibfabric_acm.h`.
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
//! What the functions do is said in the header. Here, from the top down:
//!
//! | module | holds |
//! |---|---|
//! | `resolve` | names, addresses and paths resolved |
//! | `perf` | counters |
//! | `endpoint` | what the service tells of its endpoints |
//! | `handle` | connections, and whose turn it is on them |
//! | `arguments` | what C programs pass, made into what it means |
//! | `arrays` | what C programs get and give back |
//! | `error` | `errno`, and the text of what failed last |
//!
//! All calls wait for their answers; those on one connection wait for each other. No panic reaches the program. It is
//! for Linux; elsewhere the crate is empty.

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

//! A library for `LD_PRELOAD`, which lets unmodified programs with libibumad, libibverbs or librdmacm run on a
//! simulated fabric or over RoCEv2.
//!
//! ```console
//! $ ibfabric sim fabric.net &
//! $ LD_PRELOAD=libib_preload.so ibnetdiscover
//! $ ibfabric run --attach sim --node host-0 -- ibv_devinfo
//! ```
//!
//! The library replaces the C library functions through which these libraries reach the
//! kernel. The umad device is a client of ibsim's sockets; the uverbs and `rdma_cm` devices drive a software HCA.
//! These are the modules, from the top down:
//!
//! | module | holds |
//! |---|---|
//! | `interpose` | replacements of C library functions that take paths and descriptors |
//! | `process` | state of the process: the connection, the open files, the receiving thread |
//! | `descriptors` | the set of the library's own descriptors |
//! | `sysfs` | files under `/sys/class/infiniband` and `/sys/class/infiniband_mad` |
//! | `verbs` | the uverbs device, for programs that use libibverbs |
//! | `cm` | the `rdma_cm` device, for programs that use librdmacm; sans-IO |
//! | `engine` | the umad device: agents, requests and their responses, retries, RMPP by `ib_mad::rmpp`; sans-IO |
//! | `program_memory` | copies from and to addresses that the program passes |
//! | `layout` | layouts of the structures in commands and responses |
//! | `readiness` | descriptors that are readable while an event waits |
//! | `errno` | error numbers of the C library |
//!
//! The program's descriptors of umad devices, and of the event files of a uverbs device, are those of
//! `eventfd(2)`. Such a descriptor is readable while a message or an event waits, so `poll`, `select`
//! and `epoll` work. `docs/reference/umad-preload.md` and `docs/reference/verbs.md` describe the use of
//! the library.

mod cm;
mod descriptors;
mod engine;
mod errno;
mod interpose;
mod layout;
mod process;
mod program_memory;
mod readiness;
mod sysfs;
mod verbs;

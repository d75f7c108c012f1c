//! A library to preload: unmodified programs that use libibumad or libibverbs, on a simulated fabric or over RoCEv2.
//!
//! ```console
//! $ ibfabric sim fabric.net &
//! $ LD_PRELOAD=libib_preload.so ibnetdiscover
//! $ ibfabric run --attach sim --node host-0 -- ibv_devinfo
//! ```
//!
//! It stands in for the functions of the C library through which these libraries reach the kernel. The umad device talks to
//! ibsim's sockets; the uverbs device drives an HCA. From the top down:
//!
//! | module | holds |
//! |---|---|
//! | `interpose` | the functions of the C library: which files and descriptors are ours, all else passes |
//! | `process` | what a process has once: the connection, the open files, the thread that receives |
//! | `sysfs` | the files that a program finds under `/sys/class/infiniband` and `/sys/class/infiniband_mad` |
//! | `verbs` | the uverbs device, for programs that use libibverbs |
//! | `engine` | the umad device: agents, requests and their responses, retries, RMPP by `ib_mad::rmpp`; sans-IO |
//!
//! A descriptor is a real one, of an `eventfd(2)` that is readable while a message waits: every way to
//! wait for it works. How to use the library is in `docs/umad-preload.md` and `docs/verbs.md`.

mod descriptors;
mod engine;
mod errno;
mod interpose;
mod process;
mod sysfs;
mod verbs;

//! A library to preload: programs that use libibumad, unmodified, on a simulated fabric.
//!
//! ```console
//! $ ibfabric sim fabric.net &
//! $ LD_PRELOAD=libib_umad_preload.so ibnetdiscover
//! ```
//!
//! It stands in for the functions of the C library through which libibumad and programs beside it
//! reach the kernel, and talks to ibsim's sockets instead. From the top down:
//!
//! | module | holds |
//! |---|---|
//! | `interpose` | the functions of the C library: which files and descriptors are ours, all else passes |
//! | `process` | what a process has once: the connection, the open files, the thread that receives |
//! | `sysfs` | the files that a program finds under `/sys/class/infiniband` and `/sys/class/infiniband_mad` |
//! | `verbs` | the uverbs device, for programs that use libibverbs |
//! | `engine` | the umad device: agents, requests and their answers, retries; sans-IO |
//! | `rmpp` | messages of several segments; sans-IO |
//!
//! A descriptor is a real one, of an `eventfd(2)` that is readable while a message waits: every way to
//! wait for it works. How to use the library is in `docs/umad-preload.md`.

mod descriptors;
mod engine;
mod errno;
mod interpose;
mod process;
mod rmpp;
mod sysfs;
mod verbs;

//! A program writes arbitrary commands to its uverbs device, and arbitrarily changes the shared rings.
//!
//! Checks that the library in the process of the program does not panic, does not access memory out of bounds, and does
//! not loop. The input chooses the actions of the program.
#![no_main]

use std::cell::RefCell;
use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/ib-preload/tests/abuse/commands.rs"]
mod commands;
#[path = "../../crates/ib-preload/tests/abuse/memory.rs"]
mod memory;
#[path = "../../crates/ib-preload/tests/abuse/program.rs"]
mod program;

// The library's replacements of C library functions are linked into this program.
use ib_preload as _;
use program::Program;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 76, 0, 1);

type Idle = Program<std::iter::Empty<u8>>;

thread_local! {
    /// A program without actions. While this program is open, the device remains open.
    static IDLE: RefCell<Option<Idle>> = const { RefCell::new(None) };
}

fuzz_target!(
    init: {
        // SAFETY: no other thread reads the environment.
        unsafe { std::env::set_var("IBFABRIC_ROCE", ADDRESS.to_string()) };
        let idle = Program::new(std::iter::empty(), ADDRESS.to_ipv6_mapped().octets());
        IDLE.set(Some(idle));
    },
    |data: &[u8]| {
        let input = data.iter().copied();
        Program::new(input, ADDRESS.to_ipv6_mapped().octets()).run();
    }
);

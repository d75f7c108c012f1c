//! Conversion of the arguments that C programs pass.

use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr};

use ib_acm::Address;
use ib_acm::client::ResolveOptions;
use ib_wire::acm::EntryFlags;
use libc::{c_char, sockaddr, sockaddr_in, sockaddr_in6};

use crate::error::Failure;

/// Returns a C string as `&str`; `None` if the pointer is null. Error messages name the argument `what`.
///
/// # Safety
/// The pointer is null or points to a string that ends with a zero byte. The string is not changed
/// while the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promises a terminated string that is not changed.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|error| Failure::argument(format!("{what}: {error}")))
}

/// Converts a C string to an `Address::Name`; `None` if the pointer is null.
///
/// # Safety
/// The pointer is null or points to a string that ends with a zero byte.
pub(crate) unsafe fn name(name: *const c_char, what: &str) -> Result<Option<Address>, Failure> {
    // SAFETY: the caller promises a string or null. The string is used only during this call.
    let Some(name) = (unsafe { text(name, what) })? else { return Ok(None) };
    let name = Address::name(name);
    name.map(Some).map_err(|error| Failure::argument(format!("{what}: {error}")))
}

/// Converts the IP address in a `sockaddr`; `None` if the pointer is null.
///
/// # Safety
/// The pointer is null or points to a complete socket address, such as a `sockaddr_in` for `AF_INET`.
pub(crate) unsafe fn ip(address: *const sockaddr, what: &str) -> Result<Option<Address>, Failure> {
    if address.is_null() {
        return Ok(None);
    }
    // SAFETY: every `sockaddr` starts with its family, and an unaligned read needs no alignment.
    let family = unsafe { (&raw const (*address).sa_family).read_unaligned() };
    match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the caller promises that an `AF_INET` address has the size of `sockaddr_in`.
            let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            Ok(Some(Address::V4(Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes()))))
        }
        libc::AF_INET6 => {
            // SAFETY: the caller promises that an `AF_INET6` address has the size of `sockaddr_in6`.
            let address = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            Ok(Some(Address::V6(Ipv6Addr::from(address.sin6_addr.s6_addr))))
        }
        family => {
            let text = format!("{what}: address family {family}, expected AF_INET or AF_INET6");
            Err(Failure::argument(text))
        }
    }
}

/// Converts the flags of a resolve call; fails if a flag is unknown.
pub(crate) fn options(flags: u32) -> Result<ResolveOptions, Failure> {
    let known = EntryFlags::NODELAY.with(EntryFlags::QUERY_SA);
    if flags & !known.0 != 0 {
        let text = format!("flags {flags:#x}: expected only IB_ACM_NODELAY and IB_ACM_QUERY_SA");
        return Err(Failure::argument(text));
    }
    let flags = EntryFlags(flags);
    Ok(ResolveOptions {
        no_delay: flags.has(EntryFlags::NODELAY),
        query_sa: flags.has(EntryFlags::QUERY_SA),
    })
}

/// Returns a required argument; fails if it is null.
pub(crate) fn required<T>(argument: Option<T>, what: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| Failure::argument(format!("{what} is NULL")))
}

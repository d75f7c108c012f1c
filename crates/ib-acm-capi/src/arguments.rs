//! What C programs pass, made into what it means.

use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr};

use ib_acm::Address;
use ib_acm::client::ResolveOptions;
use ib_wire::acm::EntryFlags;
use libc::{c_char, sockaddr, sockaddr_in, sockaddr_in6};

use crate::error::Failure;

/// Returns a text, or `None` for null.
///
/// # Safety
/// The text is null or ends with a zero, and stays as it is while what is returned is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promises a text that ends and stays.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|error| Failure::argument(format!("{what}: {error}")))
}

/// Returns a name, or `None` for null.
///
/// # Safety
/// The text is null or ends with a zero.
pub(crate) unsafe fn name(name: *const c_char, what: &str) -> Result<Option<Address>, Failure> {
    // SAFETY: the caller promises a text or null; it is used no longer than this call.
    let Some(name) = (unsafe { text(name, what) })? else { return Ok(None) };
    let name = Address::name(name);
    name.map(Some).map_err(|error| Failure::argument(format!("{what}: {error}")))
}

/// Returns an IP address, or `None` for null.
///
/// # Safety
/// The pointer is null or one of an address that is as long as its family says.
pub(crate) unsafe fn ip(address: *const sockaddr, what: &str) -> Result<Option<Address>, Failure> {
    if address.is_null() {
        return Ok(None);
    }
    // SAFETY: every address begins with its family, and nothing is asked of its alignment.
    let family = unsafe { (&raw const (*address).sa_family).read_unaligned() };
    match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the caller promises that an address of this family is as long as such are.
            let address = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            Ok(Some(Address::V4(Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes()))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            Ok(Some(Address::V6(Ipv6Addr::from(address.sin6_addr.s6_addr))))
        }
        family => {
            let text = format!("{what}: a family of {family}, expected AF_INET or AF_INET6");
            Err(Failure::argument(text))
        }
    }
}

/// Returns what flags ask for.
pub(crate) fn options(flags: u32) -> Result<ResolveOptions, Failure> {
    let known = EntryFlags::NODELAY.with(EntryFlags::QUERY_SA);
    if flags & !known.0 != 0 {
        let text = format!("flags {flags:#x}: expected IB_ACM_NODELAY and IB_ACM_QUERY_SA at most");
        return Err(Failure::argument(text));
    }
    let flags = EntryFlags(flags);
    Ok(ResolveOptions {
        no_delay: flags.has(EntryFlags::NODELAY),
        query_sa: flags.has(EntryFlags::QUERY_SA),
    })
}

/// Returns an argument that must be there.
pub(crate) fn needed<T>(argument: Option<T>, what: &str) -> Result<T, Failure> {
    argument.ok_or_else(|| Failure::argument(format!("{what}: NULL")))
}

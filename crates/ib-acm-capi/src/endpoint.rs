//! Queries of the endpoints of the service.

use std::num::NonZeroU8;

use ib_acm::client::{ClientError, EndpointDescription};
use ib_wire::acm::ClientStatus;
use libc::{c_char, c_int, c_uint};

use crate::ClientHandle;
use crate::arrays::{Out, free};
use crate::error::{Failure, guarded, status};

/// The size in bytes of a text field, including the terminating zero.
const TEXT: usize = 65;

/// An endpoint: `struct ib_acm_endpoint`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Endpoint {
    /// The GUID of the HCA. All numbers of this structure are in host byte order.
    pub device_guid: u64,
    /// The P_Key.
    pub pkey: u16,
    /// The number of the port on the HCA.
    pub port: u8,
    /// The number of ports of the HCA.
    pub port_count: u8,
    /// Zero.
    pub reserved: u32,
    /// The name of the ACM provider.
    pub provider: [c_char; TEXT],
}

/// A name or an address as text: `struct ib_acm_address`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Text {
    /// A name or an address as text, padded with zeros.
    pub text: [c_char; TEXT],
}

/// Queries an endpoint; see `ib_acm_query_endpoint` in the header.
///
/// # Safety
/// The handle is null or an open connection. Other pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_query_endpoint(
    handle: *mut ClientHandle,
    port: c_uint,
    index: c_uint,
    endpoint: *mut Endpoint,
    addresses: *mut *mut Text,
    count: *mut usize,
) -> c_int {
    status(guarded(|| {
        let out = Out::new(addresses, count)?;
        if endpoint.is_null() {
            return Err(Failure::argument("the pointer for the endpoint is NULL"));
        }
        let number = |number: c_uint, what: &str| {
            let small = u8::try_from(number);
            small.map_err(|_| Failure::argument(format!("{what} {number}: expected at most 255")))
        };
        let port = number(port, "port")?;
        let index = NonZeroU8::new(number(index, "endpoint")?);
        let index = index.ok_or_else(|| Failure::argument("endpoint 0: expected 1 to 255"))?;
        let ask = |client: &mut ib_acm::client::Client| {
            client.endpoint(index, port)?.ok_or(ClientError::Refused(ClientStatus::EINVAL))
        };
        // SAFETY: the caller promises an open connection or null.
        let found = unsafe { ClientHandle::with(handle, ask) }?;
        let EndpointDescription {
            device_guid, port, port_count, p_key, provider, addresses, ..
        } = found;
        let texts = addresses.iter().map(|text| Text { text: text_of(text) });
        // SAFETY: the caller promises that `addresses` and `count` are writable. Bytes need no
        // alignment.
        unsafe { out.store(&texts.collect::<Vec<_>>()) }?;
        let told = Endpoint {
            device_guid: device_guid.0,
            pkey: p_key.0,
            port,
            port_count,
            reserved: 0,
            provider: text_of(&provider),
        };
        // SAFETY: the caller promises that `endpoint` is writable.
        unsafe { endpoint.write_unaligned(told) };
        Ok(())
    }))
}

/// Frees names and addresses; see `ib_acm_free_addresses` in the header.
///
/// # Safety
/// The pointer is null or a result of [`ib_acm_query_endpoint`], and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_free_addresses(addresses: *mut Text) {
    // SAFETY: the caller promises null or a result array that is not used afterwards.
    unsafe { free(addresses) };
}

/// Returns a text with a terminating zero, truncated to 64 bytes as in the protocol.
fn text_of(text: &str) -> [c_char; TEXT] {
    let mut all = [0; TEXT];
    for (slot, &byte) in all[..TEXT - 1].iter_mut().zip(text.as_bytes()) {
        *slot = byte as c_char;
    }
    all
}

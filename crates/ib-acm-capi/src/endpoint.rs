//! What the service tells of its endpoints.

use std::num::NonZeroU8;

use ib_acm::client::{ClientError, EndpointDescription};
use ib_wire::acm::ClientStatus;
use libc::{c_char, c_int, c_uint};

use crate::ClientHandle;
use crate::arrays::{Out, free};
use crate::error::{Failure, guarded, status};

/// The room for a text with the zero behind it.
const TEXT: usize = 65;

/// An endpoint: `struct ib_acm_endpoint`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Endpoint {
    /// The GUID of the adapter, in the machine's order as all numbers here.
    pub device_guid: u64,
    /// The partition.
    pub pkey: u16,
    /// The number of the port.
    pub port: u8,
    /// How many ports the adapter has.
    pub port_count: u8,
    /// Zero.
    pub reserved: u32,
    /// Who resolves for it.
    pub provider: [c_char; TEXT],
}

/// A name or an address as the service writes it: `struct ib_acm_address`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Text {
    /// The text, and zeros behind it.
    pub text: [c_char; TEXT],
}

/// Asks for an endpoint, as `ib_acm_query_endpoint` in the header says.
///
/// # Safety
/// The handle is null or one of a connection that has not been ended; the other pointers are null or can be written.
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
            return Err(Failure::argument("the place for the endpoint: NULL"));
        }
        let number = |number: c_uint, what: &str| {
            let small = u8::try_from(number);
            small.map_err(|_| Failure::argument(format!("{what} {number}: expected 255 at most")))
        };
        let port = number(port, "port")?;
        let index = NonZeroU8::new(number(index, "endpoint")?);
        let index = index.ok_or_else(|| Failure::argument("endpoint 0: expected 1 to 255"))?;
        let ask = |client: &mut ib_acm::client::Client| {
            client.endpoint(index, port)?.ok_or(ClientError::Refused(ClientStatus::EINVAL))
        };
        // SAFETY: the caller promises a connection or null.
        let found = unsafe { ClientHandle::with(handle, ask) }?;
        let EndpointDescription {
            device_guid, port, port_count, p_key, provider, addresses, ..
        } = found;
        let texts = addresses.iter().map(|text| Text { text: text_of(text) });
        // SAFETY: the caller promises that both can be written; bytes need no alignment.
        unsafe { out.store(&texts.collect::<Vec<_>>()) }?;
        let told = Endpoint {
            device_guid: device_guid.0,
            pkey: p_key.0,
            port,
            port_count,
            reserved: 0,
            provider: text_of(&provider),
        };
        // SAFETY: the caller promises that what is not null can be written.
        unsafe { endpoint.write_unaligned(told) };
        Ok(())
    }))
}

/// Gives names and addresses back, as `ib_acm_free_addresses` in the header says.
///
/// # Safety
/// The pointer is null or one of [`ib_acm_query_endpoint`], and it is used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_free_addresses(addresses: *mut Text) {
    // SAFETY: the caller promises the same.
    unsafe { free(addresses) };
}

/// Returns a text with a zero behind it. The protocol has room for 64 bytes.
fn text_of(text: &str) -> [c_char; TEXT] {
    let mut all = [0; TEXT];
    for (place, &byte) in all[..TEXT - 1].iter_mut().zip(text.as_bytes()) {
        *place = byte as c_char;
    }
    all
}

//! Connections to the service. Calls on the same connection are serialized.

use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ib_acm::client::{Client, ClientError, ClientOptions, ServiceAddress};
use libc::{c_char, c_int, c_uint};

use crate::arguments::text;
use crate::error::{Failure, guarded, status};

/// A connection to the service: `struct ib_acm_client`.
#[derive(Debug)]
pub struct ClientHandle {
    client: Mutex<Client>,
}

impl ClientHandle {
    fn connect(service: &ServiceAddress) -> Result<*mut Self, Failure> {
        let client = Client::connect(service, ClientOptions::default())?;
        Ok(Box::into_raw(Box::new(Self { client: Mutex::new(client) })))
    }

    /// Locks a connection and calls `work` with the client of this connection.
    ///
    /// # Safety
    /// The handle is null or an open connection.
    pub(crate) unsafe fn with<T>(
        handle: *mut Self,
        work: impl FnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T, Failure> {
        // SAFETY: the caller promises null or an open connection. Only shared references to a connection exist.
        let handle = unsafe { handle.as_ref() };
        let handle = handle.ok_or_else(|| Failure::argument("the connection is NULL"))?;
        let mut client = handle.client.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(work(&mut client)?)
    }
}

/// Connects to a service; see `ib_acm_connect` in the header.
///
/// # Safety
/// The pointer is null or points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_connect(service: *const c_char) -> *mut ClientHandle {
    let connect = || {
        // SAFETY: the caller promises a string or null.
        let service = match unsafe { text(service, "the service") }? {
            Some("") => return Err(Failure::argument("the service is an empty string")),
            Some(service) => ServiceAddress::from_text(service),
            None => ServiceAddress::find(),
        };
        ClientHandle::connect(&service)
    };
    guarded(connect).unwrap_or(ptr::null_mut())
}

/// Connects to a service at a TCP port; see `ib_acm_connect_tcp` in the header.
///
/// # Safety
/// The pointer is null or points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_connect_tcp(host: *const c_char, port: u16) -> *mut ClientHandle {
    let connect = || {
        // SAFETY: the caller promises a string or null.
        let host = unsafe { text(host, "the host") }?.filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| Failure::argument("the host is NULL or an empty string"))?;
        ClientHandle::connect(&ServiceAddress::tcp(host, port))
    };
    guarded(connect).unwrap_or(ptr::null_mut())
}

/// Closes a connection; see `ib_acm_disconnect` in the header.
///
/// # Safety
/// The handle is null or an open connection. No other call uses the connection now or later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_disconnect(handle: *mut ClientHandle) {
    if handle.is_null() {
        return;
    }
    // SAFETY: the pointer is from `Box::into_raw`, and the caller promises not to use it again.
    let handle = unsafe { Box::from_raw(handle) };
    guarded(|| {
        drop(handle);
        Ok(())
    });
}

/// Sets the response timeout of a connection; see `ib_acm_set_patience` in the header.
///
/// # Safety
/// The handle is null or an open connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_set_patience(
    handle: *mut ClientHandle,
    milliseconds: c_uint,
) -> c_int {
    let timeout = Duration::from_millis(milliseconds.into());
    let set = |client: &mut Client| {
        client.set_reply_timeout(timeout);
        Ok(())
    };
    // SAFETY: the caller promises an open connection or null.
    status(guarded(|| unsafe { ClientHandle::with(handle, set) }))
}

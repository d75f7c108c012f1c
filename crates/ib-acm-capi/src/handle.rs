//! Connections, and whose turn it is on them.

use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ib_acm::client::{Client, ClientError, ClientOptions, ServiceAddress};
use libc::{c_char, c_int, c_uint};

use crate::arguments::text;
use crate::error::{Failure, guarded, status};

/// A connection as C programs hold it: `struct ib_acm_client`.
#[derive(Debug)]
pub struct ClientHandle {
    client: Mutex<Client>,
}

impl ClientHandle {
    fn connect(service: &ServiceAddress) -> Result<*mut Self, Failure> {
        let client = Client::connect(service, ClientOptions::default())?;
        Ok(Box::into_raw(Box::new(Self { client: Mutex::new(client) })))
    }

    /// Does something with a connection when it is this call's turn.
    ///
    /// # Safety
    /// The pointer is null or one of a connection that has not been ended.
    pub(crate) unsafe fn with<T>(
        handle: *mut Self,
        work: impl FnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T, Failure> {
        // SAFETY: the caller promises that a connection is there unless the pointer is null; only shared references
        // to it are ever made.
        let handle = unsafe { handle.as_ref() };
        let handle = handle.ok_or_else(|| Failure::argument("no connection: NULL"))?;
        let mut client = handle.client.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(work(&mut client)?)
    }
}

/// Connects to a service, as `ib_acm_connect` in the header says.
///
/// # Safety
/// The text is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_connect(service: *const c_char) -> *mut ClientHandle {
    let connect = || {
        // SAFETY: the caller promises a text or null.
        let service = match unsafe { text(service, "the service") }? {
            Some("") => return Err(Failure::argument("the service: an empty text")),
            Some(service) => ServiceAddress::from_text(service),
            None => ServiceAddress::find(),
        };
        ClientHandle::connect(&service)
    };
    guarded(connect).unwrap_or(ptr::null_mut())
}

/// Connects to a service at a TCP port, as `ib_acm_connect_tcp` in the header says.
///
/// # Safety
/// The text is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_connect_tcp(host: *const c_char, port: u16) -> *mut ClientHandle {
    let connect = || {
        // SAFETY: the caller promises a text or null.
        let host = unsafe { text(host, "the host") }?.filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| Failure::argument("the host: NULL or an empty text"))?;
        ClientHandle::connect(&ServiceAddress::tcp(host, port))
    };
    guarded(connect).unwrap_or(ptr::null_mut())
}

/// Ends a connection, as `ib_acm_disconnect` in the header says.
///
/// # Safety
/// The pointer is null, or one of a connection that has not been ended and that no other call uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_disconnect(handle: *mut ClientHandle) {
    if handle.is_null() {
        return;
    }
    // SAFETY: the pointer came out of a box, and the caller promises that this is its last use.
    let handle = unsafe { Box::from_raw(handle) };
    guarded(|| {
        drop(handle);
        Ok(())
    });
}

/// Sets how long answers may take, as `ib_acm_set_patience` in the header says.
///
/// # Safety
/// The pointer is null or one of a connection that has not been ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ib_acm_set_patience(
    handle: *mut ClientHandle,
    milliseconds: c_uint,
) -> c_int {
    let patience = Duration::from_millis(milliseconds.into());
    let set = |client: &mut Client| {
        client.set_reply_timeout(patience);
        Ok(())
    };
    // SAFETY: the caller promises a connection or null.
    status(guarded(|| unsafe { ClientHandle::with(handle, set) }))
}

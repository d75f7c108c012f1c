//! Blocking calls: drives a requester on a link.

use std::collections::BTreeMap;

use ib_link::{LinkError, MadLink};
use ib_types::Instant;
use ib_wire::mad::TransactionId;

use crate::{CallError, Completion, Failure, Message, Request, Requester, RequesterConfig};

/// Drives a requester on a link until a request ends, and returns its completion.
///
/// Returns `None` if no request is outstanding. Received MADs that do not belong to the requester are dropped. ACKs are
/// passed to the link before the function returns, but some links do not send ACKs until their next [`MadLink::wait`].
///
/// # Errors
/// Fails if the link fails.
pub fn drive(
    requester: &mut Requester,
    link: &mut dyn MadLink,
) -> Result<Option<Completion>, LinkError> {
    loop {
        transmit(requester, link)?;
        if let Some(completion) = requester.poll_event() {
            return Ok(Some(completion));
        }
        if requester.outstanding() == 0 {
            return Ok(None);
        }
        while let Some(incoming) = link.receive()? {
            requester.handle(link.now(), &incoming);
            transmit(requester, link)?;
        }
        requester.handle_timeout(link.now());
        transmit(requester, link)?;
        if let Some(completion) = requester.poll_event() {
            return Ok(Some(completion));
        }
        link.wait(requester.poll_timeout().unwrap_or(Instant::NEVER))?;
    }
}

/// A client for blocking calls.
#[derive(Debug)]
pub struct Client {
    requester: Requester,
}

impl Client {
    /// Creates a client.
    #[must_use]
    pub fn new(config: RequesterConfig) -> Self {
        Self { requester: Requester::new(config) }
    }

    /// Sends a request and returns its response, which may have any status.
    ///
    /// # Errors
    /// Fails if the request is invalid, if it ends without a response, or if the link fails.
    pub fn call(&mut self, link: &mut dyn MadLink, request: Request) -> Result<Message, CallError> {
        let results = self.call_all(link, vec![request])?;
        Ok(results.into_iter().next().expect("each request has a result")?)
    }

    /// Sends requests, as many at a time as the window permits, and returns their results in the
    /// same order.
    ///
    /// # Errors
    /// Fails if the link fails, or if a request is invalid. If a request is invalid, no request is sent. After a
    /// failure, all requests are cancelled.
    pub fn call_all(
        &mut self,
        link: &mut dyn MadLink,
        requests: Vec<Request>,
    ) -> Result<Vec<Result<Message, Failure>>, CallError> {
        let mut started = Vec::with_capacity(requests.len());
        for request in requests {
            match self.requester.start(request) {
                Ok(transaction_id) => started.push((transaction_id, None)),
                Err(error) => {
                    self.forget(&started);
                    return Err(error.into());
                }
            }
        }
        if let Err(error) = self.collect(link, &mut started) {
            self.forget(&started);
            return Err(error.into());
        }
        let results = started.into_iter().map(|(_, result)| result);
        Ok(results.map(|result| result.expect("`collect` waited for all results")).collect())
    }

    /// Returns the requester, for example to read its counters.
    #[must_use]
    pub const fn requester(&self) -> &Requester {
        &self.requester
    }

    /// Waits until all requests have ended, and the link has sent the last ACK.
    fn collect(
        &mut self,
        link: &mut dyn MadLink,
        started: &mut [Started],
    ) -> Result<(), LinkError> {
        let index: BTreeMap<TransactionId, usize> =
            started.iter().enumerate().map(|(index, &(id, _))| (id, index)).collect();
        while let Some(completion) = drive(&mut self.requester, link)? {
            if let Some(&index) = index.get(&completion.transaction_id) {
                started[index].1 = Some(completion.result);
            }
        }
        link.wait(link.now())
    }

    fn forget(&mut self, started: &[Started]) {
        for &(transaction_id, _) in started {
            self.requester.cancel(transaction_id);
        }
        while self.requester.poll_event().is_some() {}
    }
}

/// The transaction ID of a started request, and the result of the request; `None` until the request has ended.
type Started = (TransactionId, Option<Result<Message, Failure>>);

/// Sends over the link every MAD that the requester has ready.
fn transmit(requester: &mut Requester, link: &mut dyn MadLink) -> Result<(), LinkError> {
    while let Some(datagram) = requester.poll_transmit(link.now()) {
        link.send(&datagram)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

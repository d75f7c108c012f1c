//! A requester and a link in one loop, for programs that wait.

use std::collections::BTreeMap;

use ib_link::{LinkError, MadLink};
use ib_types::Instant;
use ib_wire::mad::TransactionId;

use crate::{CallError, Completion, Failure, Message, Request, Requester, RequesterConfig};

/// Passes datagrams between a requester and a link until a request ends. Returns how; `None` when no
/// request is under way.
///
/// What arrives for others is dropped. Acknowledgements are with the link when it returns, but the
/// link may keep them until it is waited for.
///
/// # Errors
/// Fails when the link does.
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

/// Asks and waits for the answer.
#[derive(Debug)]
pub struct Client {
    requester: Requester,
}

impl Client {
    /// Returns a client with a requester of its own.
    #[must_use]
    pub fn new(config: RequesterConfig) -> Self {
        Self { requester: Requester::new(config) }
    }

    /// Sends a request and returns its answer, whatever the status in it says.
    ///
    /// # Errors
    /// Fails when the request cannot be started, when it ends without an answer, and when the link
    /// fails.
    pub fn call(&mut self, link: &mut dyn MadLink, request: Request) -> Result<Message, CallError> {
        let results = self.call_all(link, vec![request])?;
        Ok(results.into_iter().next().expect("one request has one result")?)
    }

    /// Sends requests, as many at a time as the window allows, and returns what each ended with, in
    /// their order.
    ///
    /// # Errors
    /// Fails when one of them cannot be started, before any is sent, and when the link fails; all are
    /// forgotten then.
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
        Ok(results.map(|result| result.expect("every request ends")).collect())
    }

    /// Returns the requester, for its counters.
    #[must_use]
    pub const fn requester(&self) -> &Requester {
        &self.requester
    }

    /// Waits until all requests have ended and the last acknowledgement has left the link.
    fn collect(
        &mut self,
        link: &mut dyn MadLink,
        started: &mut [Started],
    ) -> Result<(), LinkError> {
        let index: BTreeMap<TransactionId, usize> =
            started.iter().enumerate().map(|(index, &(id, _))| (id, index)).collect();
        while let Some(completion) = drive(&mut self.requester, link)? {
            if let Some(&place) = index.get(&completion.transaction_id) {
                started[place].1 = Some(completion.result);
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

/// A request that was started and what it ended with, once it has.
type Started = (TransactionId, Option<Result<Message, Failure>>);

/// Hands the link all that the requester wants to send.
fn transmit(requester: &mut Requester, link: &mut dyn MadLink) -> Result<(), LinkError> {
    while let Some(datagram) = requester.poll_transmit(link.now()) {
        link.send(&datagram)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! The blocking client.

use std::io;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ib_wire::acm::{ClientStatus, MAX_LENGTH};
use ib_wire::mad::sa::PathRecord;

use super::stream::Stream;
use super::{
    ClientError, CounterScope, Counters, EndpointDescription, Pipeline, Reply, Request,
    ResolveOptions, Resolved, ServiceAddress, TransactionNumber,
};
use crate::Address;

/// Time limits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Time limit of the connection setup. The lookup of a host name is not included.
    pub connect: Duration,
    /// Time limit of a reply. The service may need several seconds, because it retries its requests to peers and the
    /// SA.
    pub reply: Duration,
}

impl ClientOptions {
    /// Maximum time limit. With a larger one, the computation of a deadline could overflow.
    const MAX: Duration = Duration::from_secs(1 << 30);

    /// Returns the options with time limits of at most [`Self::MAX`].
    fn bounded(self) -> Self {
        let [connect, reply] = [self.connect, self.reply].map(|time| time.min(Self::MAX));
        Self { connect, reply }
    }
}

impl Default for ClientOptions {
    /// Returns time limits of 5 seconds for the connection setup and 30 seconds for a reply.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), reply: Duration::from_secs(30) }
    }
}

/// A connection to a service, with one outstanding request at a time.
///
/// After a reply timeout the client can send the next request, and drops a late reply. After any other failure of the
/// connection, all further requests fail with the same error.
#[derive(Debug)]
pub struct Client {
    service: ServiceAddress,
    stream: Stream,
    pipeline: Pipeline,
    reply_timeout: Duration,
    ended: Option<ClientError>,
}

impl Client {
    /// Connects to a service.
    ///
    /// # Errors
    /// Fails with [`ClientError::Connect`] if the service cannot be reached.
    pub fn connect(service: &ServiceAddress, options: ClientOptions) -> Result<Self, ClientError> {
        let options = options.bounded();
        let stream = Stream::connect(service, options.connect).map_err(|error| {
            ClientError::Connect { service: service.clone(), error: Arc::new(error) }
        })?;
        let (service, pipeline) = (service.clone(), Pipeline::default());
        Ok(Self { service, stream, pipeline, reply_timeout: options.reply, ended: None })
    }

    /// Sets the time limit of replies.
    pub fn set_reply_timeout(&mut self, timeout: Duration) {
        self.reply_timeout = timeout.min(ClientOptions::MAX);
    }

    /// Resolves the destination to paths. If `source` is `None`, the service chooses the source.
    ///
    /// # Errors
    /// Fails with [`ClientError::Refused`] if the service finds no path, and with the errors of [`Client::call`].
    pub fn resolve(
        &mut self,
        source: Option<&Address>,
        destination: &Address,
        options: ResolveOptions,
    ) -> Result<Resolved, ClientError> {
        self.call(&Request::resolve(source, destination, options)?).map(Reply::into_resolved)
    }

    /// Resolves the path between the GIDs or the LIDs in a path record.
    ///
    /// # Errors
    /// Fails with the errors of [`Client::resolve`].
    pub fn resolve_path(
        &mut self,
        path: &PathRecord,
        options: ResolveOptions,
    ) -> Result<Resolved, ClientError> {
        self.call(&Request::resolve_path(path, options)).map(Reply::into_resolved)
    }

    /// Reads the counters of the service or of an endpoint.
    ///
    /// # Errors
    /// Fails with [`ClientError::Refused`] if the endpoint does not exist, and with the errors of [`Client::call`].
    pub fn perf(&mut self, of: &CounterScope) -> Result<Counters, ClientError> {
        self.call(&Request::perf(of)?).map(Reply::into_counters)
    }

    /// Reads the endpoint with this index among the endpoints of the ports that have the number `port` on their HCA. If
    /// `port` is 0, the index counts all endpoints. Returns `None` if there are fewer endpoints.
    ///
    /// # Errors
    /// Fails with the errors of [`Client::call`].
    pub fn endpoint(
        &mut self,
        index: NonZeroU8,
        port: u8,
    ) -> Result<Option<EndpointDescription>, ClientError> {
        match self.call(&Request::endpoint(index, port)) {
            Err(ClientError::Refused(ClientStatus::EINVAL)) => Ok(None),
            result => result.map(|reply| Some(reply.into_endpoint())),
        }
    }

    /// Reads up to 255 endpoints of the ports that have the number `port` on their HCA, or of all ports if `port` is 0.
    ///
    /// # Errors
    /// Fails with the errors of [`Client::call`].
    pub fn endpoints(&mut self, port: u8) -> Result<Vec<EndpointDescription>, ClientError> {
        let mut endpoints = Vec::new();
        for index in 1..=u8::MAX {
            let index = NonZeroU8::new(index).expect("the index starts at 1");
            let Some(endpoint) = self.endpoint(index, port)? else { break };
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }

    /// Sends a request and waits for its reply.
    ///
    /// # Errors
    /// Fails if the service rejects the request, if no reply arrives in time, or if the connection has failed.
    pub fn call(&mut self, request: &Request) -> Result<Reply, ClientError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let deadline = Instant::now() + self.reply_timeout;
        let (transaction, bytes) = self.pipeline.start(request);
        let result = self.exchange(transaction, &bytes, deadline);
        match &result {
            Ok(_) | Err(ClientError::Refused(_)) => {}
            Err(ClientError::Timeout { .. }) => self.pipeline.forget(transaction),
            Err(error) => self.ended = Some(error.clone()),
        }
        result
    }

    fn exchange(
        &mut self,
        transaction: TransactionNumber,
        bytes: &[u8],
        deadline: Instant,
    ) -> Result<Reply, ClientError> {
        // After a partly written request, no further request can be sent, so the connection has failed.
        self.stream.write(bytes, deadline).map_err(|error| self.broken(error))?;
        let mut buffer = [0; MAX_LENGTH];
        loop {
            let answer = self
                .pipeline
                .poll_answer()
                .map_err(|error| ClientError::Reply { service: self.service.clone(), error })?;
            if let Some(answer) = answer {
                debug_assert_eq!(
                    answer.transaction, transaction,
                    "no other request is outstanding"
                );
                return answer.result.map_err(ClientError::Refused);
            }
            let read = match self.stream.read(&mut buffer, deadline) {
                Ok(0) => {
                    let incomplete = self.pipeline.incomplete();
                    return Err(ClientError::Closed { service: self.service.clone(), incomplete });
                }
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    let (service, limit) = (self.service.clone(), self.reply_timeout);
                    return Err(ClientError::Timeout { service, limit });
                }
                Err(error) => return Err(self.broken(error)),
            };
            self.pipeline.handle_bytes(&buffer[..read]);
        }
    }

    fn broken(&self, error: io::Error) -> ClientError {
        ClientError::Broken { service: self.service.clone(), error: Arc::new(error) }
    }
}

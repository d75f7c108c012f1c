//! The client of many callers over one connection.
//!
//! One task owns the connection. Callers hand it their requests with a channel for the answer and one of the permits
//! that bound how many are in flight.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::num::NonZeroU8;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ib_wire::acm::{ClientStatus, MOST};
use ib_wire::mad::sa::PathRecord;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{self, Instant};

use super::{
    ClientError, ClientOptions, Counters, EndpointDescription, PerfOf, Pipeline, Reply, Request,
    ResolveOptions, Resolved, ServiceAddress, TransactionNumber,
};
use crate::Address;

/// A connection to a service for any number of callers at once; clones share it.
///
/// At most [`ClientOptions::in_flight`] requests are in flight, further ones wait for their turn within their own time.
/// A request whose future is dropped keeps its place until it is answered or its time is over. When the connection ends, every request
/// fails with the same error. It ends with the last clone.
#[derive(Clone, Debug)]
pub struct AsyncClient {
    calls: mpsc::UnboundedSender<Call>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    service: ServiceAddress,
    patience: Duration,
    permits: Arc<Semaphore>,
    /// Why the connection has ended.
    ended: OnceLock<ClientError>,
}

type Answered = Result<Reply, ClientError>;

#[derive(Debug)]
struct Call {
    request: Request,
    caller: oneshot::Sender<Answered>,
    permit: OwnedSemaphorePermit,
}

impl AsyncClient {
    /// Connects to a service and starts the task that serves the connection.
    ///
    /// # Errors
    /// Fails with [`ClientError::Connect`] when it cannot be reached.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with time and I/O.
    pub async fn connect(
        service: &ServiceAddress,
        options: ClientOptions,
    ) -> Result<Self, ClientError> {
        let options = options.bounded();
        let (calls, queue) = mpsc::unbounded_channel();
        let in_flight = options.in_flight.clamp(1, Semaphore::MAX_PERMITS);
        let shared = Arc::new(Shared {
            service: service.clone(),
            patience: options.reply,
            permits: Arc::new(Semaphore::new(in_flight)),
            ended: OnceLock::new(),
        });
        let connecting = async {
            match service {
                #[cfg(unix)]
                ServiceAddress::Unix(path) => {
                    let stream = connect_local(path).await?;
                    tokio::spawn(Driver::new(queue, shared.clone()).serve(stream));
                }
                ServiceAddress::Tcp { host, port } => {
                    let stream = TcpStream::connect((host.as_str(), *port)).await?;
                    stream.set_nodelay(true)?;
                    tokio::spawn(Driver::new(queue, shared.clone()).serve(stream));
                }
            }
            Ok(())
        };
        let connected = time::timeout(options.connect, connecting).await;
        connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(|error| {
            ClientError::Connect { service: service.clone(), error: Arc::new(error) }
        })?;
        Ok(Self { calls, shared })
    }

    /// Resolves an address to paths, from a source or from whichever the service chooses.
    ///
    /// # Errors
    /// Fails with [`ClientError::Refused`] when the service has no path, and as [`AsyncClient::call`] does.
    pub async fn resolve(
        &self,
        source: Option<&Address>,
        destination: &Address,
        options: ResolveOptions,
    ) -> Result<Resolved, ClientError> {
        let request = Request::resolve(source, destination, options)?;
        self.call(request).await.map(Reply::into_resolved)
    }

    /// Resolves the path between the GIDs or the LIDs of a path.
    ///
    /// # Errors
    /// Fails as [`AsyncClient::resolve`] does.
    pub async fn resolve_path(
        &self,
        path: &PathRecord,
        options: ResolveOptions,
    ) -> Result<Resolved, ClientError> {
        self.call(Request::resolve_path(path, options)).await.map(Reply::into_resolved)
    }

    /// Reads counters.
    ///
    /// # Errors
    /// Fails with [`ClientError::Refused`] when there is no such endpoint, and as [`AsyncClient::call`] does.
    pub async fn perf(&self, of: &PerfOf) -> Result<Counters, ClientError> {
        self.call(Request::perf(of)?).await.map(Reply::into_counters)
    }

    /// Reads all endpoints, 255 at most, of the ports with one number or of all for 0.
    ///
    /// # Errors
    /// Fails as [`AsyncClient::call`] does.
    pub async fn endpoints(&self, port: u8) -> Result<Vec<EndpointDescription>, ClientError> {
        let mut endpoints = Vec::new();
        for index in 1..=u8::MAX {
            let index = NonZeroU8::new(index).expect("it counts from 1");
            match self.call(Request::endpoint(index, port)).await {
                Err(ClientError::Refused(ClientStatus::EINVAL)) => break,
                result => endpoints.push(result?.into_endpoint()),
            }
        }
        Ok(endpoints)
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// Fails when the service refuses, when no answer comes in time, and when the connection ends or has ended.
    pub async fn call(&self, request: Request) -> Result<Reply, ClientError> {
        let Shared { service, patience, permits, .. } = &*self.shared;
        let answer = async {
            let permit = permits.clone().acquire_owned().await.expect("permits are never closed");
            let (caller, answer) = oneshot::channel();
            if self.calls.send(Call { request, caller, permit }).is_err() {
                return Err(self.shared.end());
            }
            answer.await.unwrap_or_else(|_| Err(self.shared.end()))
        };
        time::timeout(*patience, answer).await.unwrap_or_else(|_| {
            Err(ClientError::Timeout { service: service.clone(), patience: *patience })
        })
    }
}

impl Shared {
    /// Returns why the connection has ended.
    fn end(&self) -> ClientError {
        // A runtime that shuts down drops the task before it can say why.
        let gone = || self.broken(io::Error::other("the task of the connection has been ended"));
        self.ended.get().cloned().unwrap_or_else(gone)
    }

    fn broken(&self, error: io::Error) -> ClientError {
        ClientError::Broken { service: self.service.clone(), error: Arc::new(error) }
    }
}

/// Connects to a socket of the file system, and again while its listener has no room.
#[cfg(unix)]
async fn connect_local(path: &std::path::Path) -> io::Result<tokio::net::UnixStream> {
    loop {
        match tokio::net::UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                time::sleep(Duration::from_millis(10)).await;
            }
            Ok(stream) => {
                super::stream::check_service(&stream)?;
                return Ok(stream);
            }
            Err(error) => return Err(error),
        }
    }
}

/// What owns the connection.
struct Driver {
    queue: mpsc::UnboundedReceiver<Call>,
    shared: Arc<Shared>,
    pipeline: Pipeline,
    /// The requests in flight; the time of the first is over first.
    waiting: BTreeMap<TransactionNumber, Waiting>,
    /// Messages that are not written yet, the first of them perhaps in part.
    outgoing: VecDeque<Vec<u8>>,
    written: usize,
}

/// A request in flight. Whether somebody waits for its answer or not, the service has it, so its permit is taken until
/// it is answered or its time is over.
struct Waiting {
    caller: oneshot::Sender<Answered>,
    deadline: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Driver {
    fn new(queue: mpsc::UnboundedReceiver<Call>, shared: Arc<Shared>) -> Self {
        Self {
            queue,
            shared,
            pipeline: Pipeline::default(),
            waiting: BTreeMap::new(),
            outgoing: VecDeque::new(),
            written: 0,
        }
    }

    /// Serves callers until there are none, or the connection ends.
    async fn serve(mut self, stream: impl AsyncRead + AsyncWrite) {
        let Err(error) = self.pass(stream).await else { return };
        // Nobody who finds the channels closed finds no reason.
        let _ = self.shared.ended.set(error);
    }

    async fn pass(&mut self, stream: impl AsyncRead + AsyncWrite) -> Result<(), ClientError> {
        let (mut reader, mut writer) = tokio::io::split(Box::pin(stream));
        let mut buffer = [0; 4 * MOST];
        loop {
            let next = self.outgoing.front().map_or(&[][..], |bytes| &bytes[self.written..]);
            let first = self.waiting.first_key_value().map(|(_, waiting)| waiting.deadline);
            tokio::select! {
                call = self.queue.recv() => match call {
                    Some(call) => self.start(call),
                    None => return Ok(()),
                },
                // What is dropped unfinished has neither written nor read anything.
                written = writer.write(next), if !next.is_empty() => {
                    self.written += written.map_err(|error| self.shared.broken(error))?;
                    if self.outgoing.front().is_some_and(|bytes| bytes.len() == self.written) {
                        self.outgoing.pop_front();
                        self.written = 0;
                    }
                }
                () = time::sleep_until(first.unwrap_or_else(Instant::now)), if first.is_some() => {
                    self.expire();
                }
                read = reader.read(&mut buffer) => {
                    let read = read.map_err(|error| self.shared.broken(error))?;
                    self.take(&buffer[..read])?;
                }
            }
        }
    }

    fn start(&mut self, call: Call) {
        if call.caller.is_closed() {
            return;
        }
        let (transaction, bytes) = self.pipeline.start(&call.request);
        let deadline = Instant::now() + self.shared.patience;
        let waiting = Waiting { caller: call.caller, deadline, _permit: call.permit };
        self.waiting.insert(transaction, waiting);
        self.outgoing.push_back(bytes);
    }

    /// Forgets the requests whose time is over.
    fn expire(&mut self) {
        let now = Instant::now();
        while let Some(first) = self.waiting.first_entry() {
            if first.get().deadline > now {
                break;
            }
            self.pipeline.forget(*first.key());
            first.remove();
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let service = || self.shared.service.clone();
        if bytes.is_empty() {
            let incomplete = self.pipeline.incomplete();
            return Err(ClientError::Closed { service: service(), incomplete });
        }
        self.pipeline.handle_bytes(bytes);
        let wrong = |error| ClientError::Reply { service: service(), error };
        while let Some(answer) = self.pipeline.poll_answer().map_err(wrong)? {
            let waiting = self.waiting.remove(&answer.transaction).expect("every request has one");
            // Nobody may wait for it any longer.
            let _ = waiting.caller.send(answer.result.map_err(ClientError::Refused));
        }
        Ok(())
    }
}

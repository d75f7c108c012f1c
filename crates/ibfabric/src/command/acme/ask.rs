//! Requests to ACM services, and the output of the results.

use std::io::Write as _;
use std::num::NonZeroU8;

use ib_acm::Address;
use ib_acm::client::{
    Client, ClientError, ClientOptions, CounterScope, Counters, EndpointDescription,
    ResolveOptions, Resolved, ServiceAddress,
};
use ib_wire::acm::{ClientStatus, PerfCounters};
use ib_wire::mad::sa::PathRecord;

use super::names::{End, expand};
use super::result::{
    Answer, CounterResult, EndpointResult, PathData, PathOutcome, PathResult, ServiceResult,
};
use super::{FAILED, Status};
use crate::cli::acme::AcmeArgs;
use crate::failure::Failure;
use crate::output::Output;

/// A connection to an ACM service, with the service's name and the requests of the command line.
struct Asker<'a> {
    args: &'a AcmeArgs,
    name: String,
    client: Client,
}

/// Sends all requests to an ACM service, in the same order as `ib_acme`: paths, counters, endpoints.
pub(super) fn service(
    args: &AcmeArgs,
    service: Option<&str>,
    out: &mut Output,
) -> Result<(Status, ServiceResult), Failure> {
    let address = match service {
        None => ServiceAddress::default_for_machine(),
        Some(text) => ServiceAddress::from_text(text),
    };
    let name = service.map_or_else(|| address.to_string(), str::to_owned);
    let is_text = !args.json;
    let client = match Client::connect(&address, ClientOptions::default()) {
        Ok(client) => client,
        Err(error) => {
            let why = system_error(&error);
            if is_text {
                writeln!(out, "{name},unable to contact service: {why}")?;
            }
            let missing = matches!(&error, ClientError::Connect { error, .. }
                if error.kind() == std::io::ErrorKind::NotFound);
            let status = if missing { 2 } else { FAILED };
            return Ok((status, ServiceResult::failed(name, &error)));
        }
    };
    let mut asker = Asker { args, name, client };
    let mut result = ServiceResult { service: asker.name.clone(), ..ServiceResult::default() };
    let mut status = 0;
    if let Some(destinations) = &args.destination {
        let (its_status, paths) = asker.paths(destinations, out)?;
        status = its_status;
        result.paths = Some(paths);
    }
    if let Some(what) = &args.perf {
        result.counters = Some(asker.counters(what.as_deref(), out)?);
    }
    if let Some(only) = args.endpoints {
        result.endpoints = Some(asker.endpoints(only, out)?);
    }
    Ok((status, result))
}

impl Asker<'_> {
    fn is_text(&self) -> bool {
        !self.args.json
    }

    /// Prints all endpoints of the service, or only the endpoint with number `only`. Returns them as JSON.
    fn endpoints(
        &mut self,
        only: Option<u8>,
        out: &mut Output,
    ) -> Result<Answer<Vec<EndpointResult>>, Failure> {
        let found: Result<Vec<EndpointDescription>, ClientError> = match only.map(NonZeroU8::new) {
            None => self.client.endpoints(0),
            Some(None) => Ok(Vec::new()),
            Some(Some(number)) => {
                self.client.endpoint(number, 0).map(|it| it.into_iter().collect())
            }
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                if self.is_text() {
                    writeln!(out, "{}: {}", self.name, system_error(&error))?;
                }
                return Ok(Answer::failed(&error));
            }
        };
        if self.is_text() {
            if found.is_empty() {
                writeln!(out, " Endpoint {} is not available", only.unwrap_or(1))?;
            } else {
                writeln!(out, "svc,guid,port,pkey,ep_index,prov,addr_0,addresses")?;
            }
            for it in &found {
                let EndpointDescription { index, device_guid, port, p_key, provider, .. } = it;
                let (name, guid, p_key) = (&self.name, device_guid.0, p_key.0);
                write!(out, "{name},0x{guid:016x},{port},0x{p_key:04x},{index},{provider}")?;
                for address in &it.addresses {
                    write!(out, ",{address}")?;
                }
                writeln!(out)?;
            }
        }
        let result = |it: EndpointDescription| EndpointResult {
            index: it.index,
            guid: format!("0x{:016x}", it.device_guid.0),
            port: it.port,
            port_count: it.port_count,
            pkey: it.p_key.0,
            provider: it.provider,
            addresses: it.addresses,
        };
        Ok(Answer::Found(found.into_iter().map(result).collect()))
    }

    /// Resolves each name or address in a list by a request to the service, and prints the paths.
    fn paths(
        &mut self,
        destinations: &str,
        out: &mut Output,
    ) -> Result<(Status, Vec<PathResult>), Failure> {
        let mut status = 0;
        let mut results = Vec::new();
        if self.is_text() {
            writeln!(out, "Service: {}", self.name)?;
        }
        for text in expand(destinations).map_err(Failure::Unusable)? {
            let (its_status, result) = self.path(&text, out)?;
            status = its_status;
            results.push(result);
        }
        Ok((status, results))
    }

    fn path(&mut self, text: &str, out: &mut Output) -> Result<(Status, PathResult), Failure> {
        let format = self.args.address_format;
        let is_text = self.is_text();
        let parsed = End::parse(format, text).map_err(Failure::Unusable)?;
        let (destination, shown) = parsed;
        let source = self.args.source.as_deref().map(|text| End::parse(format, text));
        let source = source.transpose().map_err(Failure::Unusable)?;
        if is_text {
            writeln!(out, "Destination: {shown}")?;
            if let Some((_, shown)) = &source {
                writeln!(out, "Source: {shown}")?;
            }
        }
        let mut last = None;
        // Repetitions of a request use the source that the service chose for the first request.
        let mut chosen_before = None;
        for _ in 0..self.args.repetitions {
            let given = source.as_ref().map(|(end, _)| end).or(chosen_before.as_ref());
            let resolved = self.resolve(given, &destination);
            if let Ok(Resolved { source: Some(chosen), .. }) = &resolved {
                chosen_before = Some(End::Name(chosen.clone()));
            }
            if let (Err(error), true) = (&resolved, is_text) {
                writeln!(out, "{} failed: {}", destination.call(), system_error(error))?;
            }
            last = Some(resolved);
        }
        let mut status = 0;
        let outcome = match last.expect("clap requires at least one repetition") {
            Ok(resolved) => {
                let chosen = resolved.source.as_ref().map(Address::to_string);
                if let (Some(chosen), true) = (&chosen, is_text) {
                    writeln!(out, "Source: {chosen}")?;
                }
                let before = chosen_before.as_ref().and_then(End::address).map(Address::to_string);
                let source = chosen.or(source.map(|(_, shown)| shown)).or(before);
                if is_text {
                    print(&resolved.path, out)?;
                }
                let mut is_verified = None;
                if self.args.verify {
                    let verified = self.verify(&resolved.path);
                    let is_good = verified.is_ok();
                    if is_text {
                        match &verified {
                            Ok(()) => writeln!(out, "SA verification: success")?,
                            Err(why) => writeln!(out, "SA verification: failed {why}")?,
                        }
                    }
                    status = if is_good { 0 } else { FAILED };
                    is_verified = Some(is_good);
                }
                let path = PathData::from(&resolved.path);
                PathOutcome::Resolved { source, path, verified: is_verified }
            }
            Err(error) => {
                status = FAILED;
                let code = error.status().map(|status| status.0);
                PathOutcome::Failed { error: error.to_string(), status: code }
            }
        };
        if is_text {
            writeln!(out)?;
        }
        Ok((status, PathResult { destination: shown, outcome }))
    }

    fn resolve(&mut self, source: Option<&End>, to: &End) -> Result<Resolved, ClientError> {
        let options = ResolveOptions { no_delay: self.args.cached, query_sa: false };
        match to.address() {
            Some(address) => self.client.resolve(source.and_then(End::address), address, options),
            None => {
                let path = to.path_to();
                let path = source.map_or(path, |source| source.path_from(path));
                self.client.resolve_path(&path, options)
            }
        }
    }

    /// Verifies a path: the service queries the SA for it. Fails with the reason unless the SA's path has the
    /// same DGID, DLID and SLID.
    fn verify(&mut self, path: &PathRecord) -> Result<(), String> {
        let options = ResolveOptions { no_delay: false, query_sa: true };
        let resolved =
            self.client.resolve_path(path, options).map_err(|error| system_error(&error))?;
        let found = resolved.path;
        let same = (found.dgid, found.dlid, found.slid) == (path.dgid, path.dlid, path.slid);
        if same { Ok(()) } else { Err("another path".to_owned()) }
    }

    /// Prints the performance counters that `what`, the value of -P, selects. Returns them as JSON.
    fn counters(
        &mut self,
        what: Option<&str>,
        out: &mut Output,
    ) -> Result<Vec<CounterResult>, Failure> {
        let is_column = what == Some("col");
        let wanted: Vec<CounterScope> = match what {
            None | Some("col") => vec![CounterScope::Service],
            Some("all") => {
                let count = self.client.endpoints(0).map_or(0, |found| found.len());
                (1..=count.min(255) as u8)
                    .filter_map(NonZeroU8::new)
                    .map(CounterScope::Endpoint)
                    .collect()
            }
            Some("s") => {
                let source = self.args.source.as_deref().ok_or_else(|| {
                    Failure::Unusable("-P s: expected -s with an address".to_owned())
                })?;
                let address = Address::parse(source)
                    .map_err(|error| Failure::Unusable(format!("-s {source}: {error}")))?;
                vec![CounterScope::Address(address)]
            }
            Some(number) => {
                let number = number.parse().map_err(|_| {
                    let what = "expected col, all, s, or an endpoint's number, 1 to 255";
                    Failure::Unusable(format!("-P {number}: {what}"))
                })?;
                vec![CounterScope::Endpoint(number)]
            }
        };
        let mut results = Vec::new();
        let mut has_header = is_column;
        for of in wanted {
            match self.client.perf(&of) {
                Ok(Counters(values)) => {
                    if self.is_text() {
                        if !std::mem::replace(&mut has_header, true) {
                            writeln!(out, "svc,{}", PerfCounters::NAMES.join(","))?;
                        }
                        self.print_counters(&values, is_column, out)?;
                    }
                    let names = PerfCounters::NAMES.iter().zip(&values);
                    let counters = names.map(|(name, value)| ((*name).to_owned(), *value));
                    results.push(Answer::Found(counters.collect()));
                }
                Err(error) => {
                    if self.is_text() {
                        let why = system_error(&error);
                        writeln!(out, "{}: Failed to query perf data: {why}", self.name)?;
                    }
                    results.push(Answer::failed(&error));
                }
            }
        }
        Ok(results)
    }

    fn print_counters(
        &self,
        values: &[u64],
        is_column: bool,
        out: &mut Output,
    ) -> Result<(), Failure> {
        if !is_column {
            write!(out, "{}", self.name)?;
            for value in values {
                write!(out, ",{value}")?;
            }
            writeln!(out)?;
            return Ok(());
        }
        writeln!(out, "{}", self.name)?;
        for (name, value) in PerfCounters::NAMES.iter().zip(values) {
            writeln!(out, "{name} : {value}")?;
        }
        Ok(())
    }
}

/// Prints a path.
fn print(path: &PathRecord, out: &mut Output) -> Result<(), Failure> {
    let gid = |gid: ib_types::Gid| std::net::Ipv6Addr::from(gid.0);
    writeln!(out, "Path information")?;
    writeln!(out, "  dgid: {}", gid(path.dgid))?;
    writeln!(out, "  sgid: {}", gid(path.sgid))?;
    writeln!(out, "  dlid: {}", path.dlid)?;
    writeln!(out, "  slid: {}", path.slid)?;
    writeln!(out, "  flow label: 0x{:x}", path.flow_label)?;
    writeln!(out, "  hop limit: {}", path.hop_limit)?;
    writeln!(out, "  tclass: {}", path.traffic_class)?;
    writeln!(out, "  reversible: {}", u8::from(path.reversible))?;
    writeln!(out, "  pkey: 0x{:x}", path.p_key.0)?;
    writeln!(out, "  sl: {}", path.sl)?;
    writeln!(out, "  mtu: {}", path.mtu.0)?;
    writeln!(out, "  rate: {}", path.rate.0)?;
    writeln!(out, "  packet lifetime: {}", path.life_time.0)?;
    Ok(())
}

/// Returns the C library's text of an error.
fn system_error(error: &ClientError) -> String {
    match error {
        ClientError::Connect { error, .. } | ClientError::Broken { error, .. } => {
            // Rust appends the error number to the text of a system error. It is removed here.
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
        ClientError::Refused(status) => match *status {
            ClientStatus::ENOMEM => "Cannot allocate memory",
            ClientStatus::ENODATA => "No data available",
            ClientStatus::ENOTCONN => "Transport endpoint is not connected",
            ClientStatus::ETIMEDOUT => "Connection timed out",
            ClientStatus::ESRCADDR | ClientStatus::EDESTADDR => "Cannot assign requested address",
            _ => "Invalid argument",
        }
        .to_owned(),
        error => error.to_string(),
    }
}

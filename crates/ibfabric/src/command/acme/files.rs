//! `ibacm_addr.cfg` and `ibacm_opts.cfg`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use ib_acm::Address;
use ib_acm::config::addresses::{AddressFile, AddressLine};
use ib_acm::config::options::Options;
use ib_attach::{AttachOptions, AttachedPort};
use ib_daemons::host::host_name;
use ib_daemons::mad_port::MadPort;
use ib_ibsim::client::{Attach, ServerAddress};
use ib_link::{MadLink as _, Remote};
use ib_mad::{Client, Request, RequesterConfig};
use ib_types::PKey;
use ib_umad::{UmadDevice, UmadOptions};
use ib_wire::mad::sa::{ComponentMask, NodeRecord, SaHeader};
use ib_wire::mad::sm::NodeType;
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use crate::cli::acme::AcmeArgs;
use crate::failure::{Failure, note};
use crate::output::Output;

/// Writes the configuration files that the options request.
pub(super) fn write(args: &AcmeArgs, out: &mut Output) -> Result<(), Failure> {
    if let Some(name) = &args.addresses {
        let path = place(args, name.as_deref(), "ibacm_addr.cfg");
        let lines = addresses(args)?;
        let count = lines.len();
        replace(&path, &AddressFile { lines }.to_file())?;
        told(args, out, &format!("{}: {count} addresses", path.display()))?;
    }
    if let Some(name) = &args.options {
        let path = place(args, name.as_deref(), "ibacm_opts.cfg");
        let options = match cluster_size(args) {
            Ok(nodes) => {
                told(args, out, &format!("the SA reports {nodes} HCAs"))?;
                Options::fitted(nodes)
            }
            Err(why) => {
                note!(
                    "{why}: using the default options, which are independent of the cluster size"
                );
                Options::default()
            }
        };
        replace(&path, &options.to_file())?;
        told(args, out, &format!("{}: options", path.display()))?;
    }
    Ok(())
}

fn told(args: &AcmeArgs, out: &mut Output, text: &str) -> Result<(), Failure> {
    if args.verbose > 0 && !args.json {
        writeln!(out, "{text}")?;
    }
    Ok(())
}

fn place(args: &AcmeArgs, name: Option<&Path>, usual: &str) -> PathBuf {
    args.directory.join(name.unwrap_or(Path::new(usual)))
}

/// Writes a file that only its owner can write, regardless of the umask.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Unusable(format!("{}: {error}", path.display()));
    ib_daemons::result_file::replace(path, 0o644, |out| out.write_all(text.as_bytes()))
        .map_err(failed)
}

/// Returns the names and addresses of this machine's ports, or of the simulated port that the options select.
fn addresses(args: &AcmeArgs) -> Result<Vec<AddressLine>, Failure> {
    let line = |address: Address, device: &str, port: u8| AddressLine {
        line: 0,
        address,
        device: device.into(),
        port,
        p_key: PKey::DEFAULT,
    };
    if let Some(name) = args.station.attach.as_ref() {
        let environment = Attach::from_environment().map_err(Failure::unusable)?;
        let name = match (name.as_str(), environment.server) {
            ("", ServerAddress::Name(name)) => name,
            (name, _) => name.to_owned(),
        };
        let node = args.station.node.clone().or(environment.node);
        let port = AttachedPort::attach(&AttachOptions { name, node }, MgmtClass::ACM);
        // A real ibsim does not report addresses, so the message names `ibfabric sim`.
        let failed = |error| {
            Failure::Unusable(format!(
                "cannot query the addresses of the port, which `ibfabric sim` provides: {error}"
            ))
        };
        let port = port.map_err(failed)?;
        let details = port.details();
        let node = Address::name(&details.node).map_err(Failure::unusable)?;
        let all = std::iter::once(node).chain(details.addresses.iter().map(|&it| it.into()));
        return Ok(all.map(|it| line(it, &details.node, details.port.number)).collect());
    }
    let devices = UmadDevice::list().map_err(Failure::unusable)?;
    let host = host_name();
    let mut lines = Vec::new();
    let linked: Vec<&UmadDevice> =
        devices.iter().filter(|device| device.is_linked().unwrap_or(false)).collect();
    if let Some(first) = linked.first() {
        let name = Address::name(&host).map_err(Failure::unusable)?;
        lines.push(line(name, &first.name, first.port));
    }
    for (number, device) in devices.iter().enumerate() {
        let name = Address::name(&format!("{host}-{}", number + 1)).map_err(Failure::unusable)?;
        lines.push(line(name, &device.name, device.port));
    }
    if lines.is_empty() {
        return Err(Failure::Unusable("there is no InfiniBand port in this machine".to_owned()));
    }
    Ok(lines)
}

/// Queries the SA for the node records of the subnet, and returns the number of HCAs.
fn cluster_size(args: &AcmeArgs) -> Result<usize, String> {
    let mut umad = UmadOptions::classes(&[]);
    umad.agents.clear();
    let mut link =
        MadPort::open(&args.station.config(), &umad, false).map_err(|error| error.to_string())?;
    let port = link.port().map_err(|error| error.to_string())?;
    if port.sm_lid == 0 {
        return Err("the port has no subnet manager".to_owned());
    }
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE, TransactionId(0));
    mad.set_attribute(&NodeRecord::zeroed());
    mad.set_sa(&SaHeader { component_mask: ComponentMask::of(&[]), ..mad.sa() });
    let remote = Remote { sl: port.sm_sl, ..Remote::gsi(port.sm_lid) };
    let mut client = Client::new(RequesterConfig::default());
    let answer = client.call(&mut link, Request::new(remote, mad));
    let answer = answer.map_err(|error| format!("SA: {error}"))?;
    if !answer.status().is_ok() {
        return Err(format!("the SA returned {}", answer.status()));
    }
    let adapters = answer.records::<NodeRecord>();
    Ok(adapters.filter(|record| record.node_info.node_type == NodeType::CHANNEL_ADAPTER).count())
}

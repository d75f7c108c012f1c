//! Queries the `NodeInfo` of a local HCA through one of its ports: `umad_node_info DEVICE [PORT]`.
//!
//! The HCA is a real one, or the simulated device `ibsim0`. For `ibsim0`, run the example under `LD_PRELOAD` of
//! `libumad2sim.so` or `libib_preload.so`.

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use ib_link::{Datagram, Incoming, MadLink, Remote};
use ib_umad::{UmadDevice, UmadLink, UmadOptions};
use ib_wire::mad::sm::NodeInfo;
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("expected the name of a device")?;
    let port = arguments.next().map(|port| port.parse()).transpose()?;
    let options = UmadOptions::classes(&[MgmtClass::SUBN_DIRECTED_ROUTE]);
    let mut link = UmadLink::open(&UmadDevice::find(&name, port)?, &options)?;
    let mut mad =
        Mad::new(MgmtClass::SUBN_DIRECTED_ROUTE, Method::GET, TransactionId(0xabcd_0000_0000_0001));
    mad.set_attribute_id(AttributeId::NODE_INFO);
    mad.0[32..36].fill(0xff);
    link.send(&Datagram::new(Remote::directed(), mad))?;
    let deadline = link.now() + Duration::from_secs(2);
    let mut output = std::io::stdout();
    writeln!(output, "port {:?}", link.port()?)?;
    while link.now() < deadline {
        match link.receive()? {
            Some(Incoming::Received(answer)) => {
                let id = answer.mad.transaction_id();
                let info = answer.mad.attribute::<NodeInfo>().ok_or("another attribute")?;
                let (guid, ports) = (info.node_guid, info.num_ports);
                writeln!(output, "transaction {id}: node {guid} with {ports} ports")?;
                return Ok(());
            }
            Some(Incoming::Lost(_)) => return Err("the request was lost".into()),
            None => link.wait(deadline)?,
        }
    }
    Err("no answer".into())
}

//! Checks that OpenSM and `ibfabric sm` set the same P_Keys and create the same multicast groups for a partition file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ib_topology::Fabric;

use super::ours;
use super::scene::{Checked, Gear, Outcome, Scene, patient};
use crate::clients::manager;
use crate::clients::server::Kind;
use crate::clients::stage::StageError;

/// The partition files. `@1`, `@2` and `@3` stand for the port GUIDs of HCAs.
const FILES: [&str; 18] = [
    "# nothing\n",
    "Default=0x7fff : ALL ;\nYetAnotherOne=0x300:SELF=full; YetAnotherOne=0x300:ALL=limited;\n",
    "Default=0x7fff : ALL ; Default=0x7fff : @2=full; Default,ipoib,mtu=5:@3=full;\n",
    "=0x5:ALL;\n=0x6,ipoib:ALL,@2=full;\n",
    "Default=0x7fff:ALL=full;a:ALL;b:@2=full;a:@3=full;\nNewPartition , ipoib : @1=full, @2=limi, @3 ;\n",
    "x=1:ALL;y=0x7ffe:ALL=full;z:ALL; Default : ALL=full; DEFAULT: ALL; default:SELF=full;\n",
    "NewPartition , ipoib : 0x123456=full, 0x3456789034=limi, 0x2134af2306, ALL ;\n",
    "ShareIO = 0x80 , defmember=full : @1, @2;\n# limited\nShareIO = 0x80 : @3, @2;\n",
    "Default=0x7fff,ipoib:\n\tmgid=ff12:401b::0707,sl=1 # random IPv4 group\n\tmgid=ff12:601b::16,sl=0\n\tmgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2 # random\n\tALL=full;\n",
    "Default=0x7fff,ipoib,mtu=5,rate=7,sl=2,scope=5,TClass=7,FlowLabel=5:ALL=full;\n",
    "Default=0x7fff,ipoib,Q_Key=0x1234,sl=2,TClass=7,FlowLabel=5,mtu=2,rate=2:\nmgid=ff12::1,sl=1\nmgid=ff12:401b::1,Q_Key=3\nmgid=ff12:401b::4,mtu=4,sl=1\nmgid=ff12:401b:1234::5,sl=0\nALL=full;\n",
    "Default=0x7fff,ipoib:\nmgid=ff12::1,scope=5,scope=3\nmgid=ff15::2,sl=0\nmgid=ff18::3,scope=8\nmgid=ff12:401b::1,scope=5\nALL=full;\n",
    "Default=0x7fff,fast,ipoib:ALL=full;\nq=0x11,indx0=3,defmember=some:ALL;\nr=0x12,defmember:ALL;\ns=0x13,DefMember=full,IPOIB:ALL;\n",
    "Default=0x7fff:ALL=full;\np=0x10,indx0:ALL;\nq=0x5,indx0:@2=full;\nr=0x4:ALL;\n",
    "Default=0x7fff:ALL=full;\np=0:ALL=full;\nq=0x8000:ALL=full;\nr=0x18010:ALL;\n",
    "Default=0x7fff:ALL, ALL_SWITCHES=full, SELF=full;\na=1:ALL_CAS=full; b=2:ALL_SWITCHES=full; c=3:ALL_ROUTERS=full;d=4:SELF;\n",
    "Default=0x7fff:ALL=full,@2=limited;\na=0x10:ALL=full,@2=limited;\na=0x10:ALL=limited;\n",
    "Default=0x7fff:ALL=full;\nq=0x10:ALL # some\n@2=full\nSELF=full\n",
];

/// Runs OpenSM and `ibfabric sm` with each partition file. Each SM runs on its own simulator.
///
/// # Errors
/// Fails if a program cannot be started.
pub fn run(gear: &Gear, kind: &Kind, fabric: &Fabric, directory: &Path) -> Outcome {
    let mut all = Checked::default();
    for (number, text) in FILES.into_iter().enumerate() {
        let place = |who: &str| directory.join(format!("{number:02}-{who}"));
        let (theirs, ours) = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| look(gear, kind, fabric, text, &place("opensm"), false));
            let ours = look(gear, kind, fabric, text, &place("ours"), true);
            (theirs.join().expect("the thread that runs OpenSM does not panic"), ours)
        });
        let ((theirs, checked), (ours, own)) = (theirs?, ours?);
        for checked in [checked, own] {
            all.checks += checked.checks;
            all.faults.extend(checked.faults);
        }
        all.check(theirs == ours, || {
            format!("{text}OpenSM:\n{theirs}ibfabric sm:\n{ours}in {}", place("*").display())
        });
    }
    all.note = format!("{} files", FILES.len());
    Ok(all)
}

/// Brings a fabric up with a partition file. Returns the P_Keys of all ports, and the multicast groups.
fn look(
    gear: &Gear,
    kind: &Kind,
    fabric: &Fabric,
    text: &str,
    directory: &Path,
    by_ours: bool,
) -> Result<(String, Checked), StageError> {
    let mut scene = Scene::open(gear, kind, fabric, &gear.own, directory)?;
    let mut text = text.to_owned();
    let adapters = fabric.nodes().filter(|(_, node)| !node.kind.is_switch());
    let ports = adapters.flat_map(|(id, _)| fabric.ports_of(id).skip(1));
    for (number, (_, port)) in (1..=3).zip(ports) {
        text = text.replace(&format!("@{number}"), &port.guid.to_string());
    }
    let file = scene.directory.join("partitions.conf");
    fs::write(&file, text)?;
    let file = file.display().to_string();
    let more = ["-P", file.as_str()];
    let (mut opensm, mut ours) = (None, None);
    if by_ours {
        let options = ours::Options { more: &more, ..ours::Options::default() };
        ours = Some(scene.manage(&options)?);
    } else {
        let options = manager::Options { more: &more, ..manager::Options::default() };
        opensm = Some(scene.manage_by_opensm(&options)?);
    }
    let mut said = String::new();
    let lids: BTreeMap<_, _> = scene.lids()?;
    for (guid, lid) in lids {
        let (answer, _) = scene.run_client(&patient(&format!("smpquery pkeys {lid}")))?;
        let full =
            |line: &&str| line.split(' ').any(|key| key.starts_with("0x") && key != "0x0000");
        let keys: Vec<&str> = answer.output.lines().filter(full).collect();
        said += &format!("{guid} {}\n", keys.join(" "));
    }
    for question in ["saquery -g", "saquery MCMR"] {
        said += &scene.run_client(&patient(question))?.0.output;
    }
    drop((opensm, ours));
    Ok((said, scene.close()))
}

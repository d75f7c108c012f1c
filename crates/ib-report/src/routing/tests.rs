use std::collections::BTreeSet;

use ib_routing::engine::{EngineError, Refusal, engine};
use ib_routing::metrics::{MetricsOptions, metrics};
use ib_routing::{
    EngineKind, NO_PATH, Routing, RoutingOptions, Subnet, SubnetOptions, SwitchId, check,
};
use ib_topology::generate::{Kind, Options, generate};
use ib_topology::{Fabric, LinkRate, NodeSpec};
use ib_types::{Guid, NodeKind};

use super::*;

/// Text that would act as markup or script if it were not escaped.
const HOSTILE: &str =
    "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"&{{title}}";

fn made(kind: &str, args: &[&str]) -> Fabric {
    generate(&Kind::parse(kind, args).unwrap(), &Options::default()).unwrap()
}

fn routed(subnet: &Subnet<'_>, kind: EngineKind) -> Routing {
    engine(kind).route(subnet, &RoutingOptions::default()).unwrap()
}

fn reported(subnet: &Subnet<'_>, routing: &Routing, refusals: &[Refusal]) -> String {
    let report = check(subnet, &routing.lfts, &routing.layers);
    let summary = Summary::new(subnet, &routing.layers, &report, None, false);
    page(
        subnet,
        routing,
        &report,
        &summary,
        Choice { fabric: "a.net", requested: "ftree,updn", refusals },
    )
}

fn page_of(fabric: &Fabric, kind: EngineKind) -> String {
    let subnet = Subnet::discover(fabric, &SubnetOptions::default()).unwrap();
    reported(&subnet, &routed(&subnet, kind), &[])
}

fn data_of(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"fabric-data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Checks that elements are properly nested.
fn assert_balanced(page: &str) {
    const VOID: [&str; 4] = ["meta", "input", "br", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, after) = after.split_once('>').expect("the tag is closed");
        rest = after;
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "tag before: {}", &rest[..rest.len().min(80)]);
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
            if ["script", "style"].contains(&name) {
                rest = &rest[rest.find(&format!("</{name}>")).expect("the element is closed")..];
            }
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn one_route_has_a_singular_noun() {
    let page = page_of(&made("mesh", &["2"]), EngineKind::MinHop);
    assert!(
        page.contains("<title>1 route: 2 links</title>"),
        "the title has a singular noun for one route"
    );
}

#[test]
fn report_of_a_sound_tree_has_its_figures() {
    let page = page_of(&made("fat-tree", &["16", "3"]), EngineKind::UpDown);
    assert_balanced(&page);
    assert!(page.contains("<strong>Sound</strong>"));
    assert!(page.contains("<title>a.net routed by updn: sound, 1,024 hosts</title>"));
    for (name, value) in
        [("switches", "320"), ("links", "3,072"), ("between switches", "2,048"), ("LIDs", "1,344")]
    {
        assert!(page.contains(&format!("<dt>{name}</dt><dd>{value}</dd>")), "{name}");
    }
    assert!(page.contains("<dt>requested</dt><dd>ftree,updn</dd>"));
    assert!(!page.contains(">Problems<"));
    assert!(!page.contains("Fallback"));
}

#[test]
fn measured_metrics_are_shown() {
    let fabric = made("fat-tree", &["8"]);
    let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).unwrap();
    let routing = routed(&subnet, EngineKind::MinHop);
    let report = check(&subnet, &routing.lfts, &routing.layers);
    let measured = metrics(&subnet, &routing.lfts, &MetricsOptions::default());
    let summary = Summary::new(&subnet, &routing.layers, &report, Some(&measured), false);
    let choice = Choice { fabric: "a.net", requested: "minhop", refusals: &[] };
    let page = page(&subnet, &routing, &report, &summary, choice);
    assert_balanced(&page);
    let percent = html::decimal(measured.effective_bisection * 100.0, 1);
    assert!(page.contains(&format!("<strong>{percent} %</strong>")));
    assert!(page.contains("flows on a link in the worst shift"));
    assert!(!reported(&subnet, &routing, &[]).contains("Effective bisection"));
}

#[test]
fn most_loaded_links_are_listed() {
    let fabric = made("torus", &["5x4"]);
    let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).unwrap();
    let routing = routed(&subnet, EngineKind::MinHop);
    let report = check(&subnet, &routing.lfts, &routing.layers);
    let page = reported(&subnet, &routing, &[]);
    let (_, table) = page.split_once("Most loaded links</h2>").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    for link in &report.load.worst {
        let node = subnet.switch_node(link.switch);
        let from = format!(
            "<td><bdi>{}</bdi> <code>{}</code></td><td>{}</td>",
            node.description, node.guid, link.port
        );
        assert!(table.contains(&from), "{from}");
        assert!(table.contains(&format!("<td>{}</td>", link.routes)));
        assert!(table.contains(&format!("data-link=\"{},{}\"", link.switch.0, link.port)));
    }
    assert_eq!(table.matches("<tr>").count(), report.load.worst.len() + 1);
}

#[test]
fn credit_loop_is_described_and_drawn() {
    let page = page_of(&made("torus", &["5x5"]), EngineKind::MinHop);
    assert_balanced(&page);
    assert!(page.contains("<strong>Faulty</strong> 1 credit loop: the fabric can deadlock."));
    assert!(page.contains("<summary>Loop 1 of 1: a cycle of "));
    assert!(page.contains("on VL0</bdi></li>"));
    let data = data_of(&page);
    assert_eq!(data["loops"].as_array().unwrap().len(), 1);
    assert!(data["loops"][0].as_array().unwrap().len() > 2);
}

#[test]
fn unreachable_nodes_and_lids_are_listed() {
    let mut fabric = made("fat-tree", &["8"]);
    let lost = NodeSpec::new(NodeKind::Switch, "lost <switch>", Guid(0xbad), 4);
    fabric.add_node(lost).unwrap();
    let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).unwrap();
    let mut routing = routed(&subnet, EngineKind::MinHop);
    let host = subnet.end_ports().iter().find(|end| !end.is_switch()).unwrap();
    let leaf = host.attachment.switch().unwrap();
    let lid = usize::from(host.base_lid.get());
    let (port, spine, there) = subnet.switch_links(leaf).next().unwrap();
    let other = subnet.switch_ids().find(|&id| id != leaf && id != spine).unwrap();
    routing.lfts.table_mut(other)[lid] = NO_PATH;
    routing.lfts.table_mut(leaf)[lid] = port;
    routing.lfts.table_mut(spine)[lid] = there;
    let page = reported(&subnet, &routing, &[]);
    assert_balanced(&page);
    assert!(page.contains("1 node cut off from the subnet manager."));
    assert!(page.contains("0x0000000000000bad &#39;lost &lt;switch&gt;&#39;"));
    assert!(page.contains("1 LID with a forwarding loop."));
    assert!(page.contains(&format!("<bdi>LID {lid} loops: ")));
    assert!(page.contains("has no entry</bdi>"));
    let faulty: BTreeSet<u64> = data_of(&page)["faulty"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap())
        .collect();
    for SwitchId(number) in [leaf, spine, other] {
        assert!(faulty.contains(&number.into()));
    }
}

#[test]
fn fallback_engine_is_explained() {
    let fabric = made("fat-tree", &["8"]);
    let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).unwrap();
    let reason = EngineError::Unsuitable("no <root>\nwas found".to_owned());
    let routing = routed(&subnet, EngineKind::MinHop);
    let page = reported(&subnet, &routing, &[(EngineKind::UpDown, reason)]);
    assert_balanced(&page);
    assert!(
        page.contains("<strong>Fallback</strong> updn could not route this subnet, minhop did")
    );
    assert!(page.contains("no &lt;root&gt;\nwas found"));
}

#[test]
fn names_are_text_and_never_markup() {
    let mut fabric = made("torus", &["4x4"]);
    let names =
        fabric.nodes().map(|(id, node)| (node.guid, format!("{HOSTILE}{}", id.0))).collect();
    fabric.rename(&names);
    fabric.add_node(NodeSpec::new(NodeKind::Switch, HOSTILE, Guid(0xbad), 4)).unwrap();
    let page = page_of(&fabric, EngineKind::MinHop);
    assert_balanced(&page);
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("{{title}}"), "values are not searched for placeholders");
    let data = data_of(&page);
    assert!(data["names"][0].as_str().unwrap().starts_with(HOSTILE));
}

#[test]
fn page_has_no_external_resources() {
    let page = page_of(&made("fat-tree", &["8", "3"]), EngineKind::MinHop);
    for outside in ["http:", "https:", "src=", "@import", "url(", "fetch(", "innerHTML", "eval("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn same_input_yields_the_same_bytes() {
    for (kind, args) in [("fat-tree", vec!["12", "3"]), ("dragonfly", vec!["a=4", "p=2", "h=2"])] {
        let fabric = made(kind, &args);
        assert_eq!(page_of(&fabric, EngineKind::MinHop), page_of(&fabric, EngineKind::MinHop));
    }
}

#[test]
fn data_has_every_switch_host_and_link() {
    for (kind, args) in [
        ("fat-tree", vec!["8", "parallel=2", "leaves=3"]),
        ("fat-tree", vec!["12", "3"]),
        ("hypercube", vec!["4"]),
        ("random", vec!["switches=30", "ports=10", "hosts=2"]),
    ] {
        let fabric = made(kind, &args);
        let subnet = Subnet::discover(&fabric, &SubnetOptions::default()).unwrap();
        let page = reported(&subnet, &routed(&subnet, EngineKind::MinHop), &[]);
        assert_balanced(&page);
        let data = data_of(&page);
        let list = |key: &str| data[key].as_array().unwrap().clone();
        let names: Vec<_> = list("names");
        for (index, id) in subnet.switch_ids().enumerate() {
            assert_eq!(names[index], subnet.switch_node(id).description.as_str());
            assert_eq!(data["guids"][index], subnet.switch(id).guid.to_string());
            assert_eq!(data["lids"][index], subnet.switch_lid(id).get());
        }
        for key in ["guids", "lids", "hosts", "x", "y", "room"] {
            assert_eq!(list(key).len(), names.len(), "{key}");
        }
        let hosts: usize = list("hosts").iter().map(|hosts| hosts.as_array().unwrap().len()).sum();
        assert_eq!(hosts, fabric.count(NodeKind::ChannelAdapter));
        let numbers: usize =
            list("bundles").iter().map(|bundle| bundle.as_array().unwrap().len() - 3).sum();
        assert_eq!(numbers / 4 + hosts, fabric.link_count());
        let places: BTreeSet<String> = (0..names.len())
            .map(|index| format!("{} {}", data["x"][index], data["y"][index]))
            .collect();
        assert_eq!(places.len(), names.len(), "positions are unique");
    }
}

#[test]
fn large_page_stays_small() {
    let fabric = made("fat-tree", &["24", "3"]);
    let page = page_of(&fabric, EngineKind::MinHop);
    assert_eq!(data_of(&page)["names"].as_array().unwrap().len(), 720);
    // The fabric has 6,912 links between switches and 3,456 hosts. The largest fabrics have eight times as many
    // of both.
    assert!(page.len() < 400_000, "the page has {} bytes", page.len());
    assert!(page.contains("<p class=\"still\">"), "a large fabric has no static picture");
}

#[test]
fn fabrics_without_links_between_switches_are_reported() {
    let mut fabric = Fabric::new();
    let adapter = |fabric: &mut Fabric, guid: u64| {
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, format!("host {guid}"), Guid(guid), 1);
        let host = fabric.add_node(spec).unwrap();
        fabric.set_port_guid(host, 1, Guid(guid + 1)).unwrap();
        host
    };
    let (a, b) = (adapter(&mut fabric, 0x10), adapter(&mut fabric, 0x20));
    fabric.connect((a, 1), (b, 1), LinkRate::DEFAULT).unwrap();
    let page = page_of(&fabric, EngineKind::MinHop);
    assert_balanced(&page);
    assert!(page.contains("There is no switch to draw."));
    assert!(!page.contains("<script"));

    let mut fabric = Fabric::new();
    let switch = fabric.add_node(NodeSpec::new(NodeKind::Switch, "only", Guid(1), 4)).unwrap();
    for port in 1..=3 {
        let host = adapter(&mut fabric, 0x10 * u64::from(port));
        fabric.connect((host, 1), (switch, port), LinkRate::DEFAULT).unwrap();
    }
    let page = page_of(&fabric, EngineKind::MinHop);
    assert_balanced(&page);
    assert!(page.contains("1 switch "));
    assert!(!page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn templates_are_filled_once() {
    assert_eq!(html::fill("a{{b}}c{{d}}", &[("b", "{{d}}"), ("d", "e")]), "a{{d}}ce");
}

#[test]
fn text_is_escaped() {
    assert_eq!(html::text("<a href=\"'&\u{7}\">"), "&lt;a href=&quot;&#39;&amp;\u{fffd}&quot;&gt;");
}

#[test]
fn numbers_are_readable() {
    assert_eq!(html::count(999_u64), "999");
    assert_eq!(html::count(1_234_567_u64), "1,234,567");
    assert_eq!(html::decimal(12_345.678, 1), "12,345.7");
    assert_eq!(html::decimal(0.5, 3), "0.500");
    let short = [0, 999, 1000, 1249, 9960, 12_345, 999_499, 999_500, 4_560_000, 748_486_656];
    let expected = ["0", "999", "1k", "1.2k", "10k", "12k", "999k", "1M", "4.6M", "748M"];
    assert_eq!(short.map(html::short), expected);
    assert_eq!(html::counted(1_u64, "link", "links"), "1 link");
    assert_eq!(html::counted(2_000_u64, "link", "links"), "2,000 links");
}

use std::sync::{Arc, Mutex};

use ib_types::NodeKind;

use super::super::shared::Counts;
use super::*;

/// Returns the lines of a page that begin with the given text.
fn lines<'p>(page: &'p str, begin: &str) -> Vec<&'p str> {
    page.lines().filter(|line| line.starts_with(begin)).collect()
}

#[test]
fn page_without_subnet_is_valid() {
    let page = page(&State::default());
    assert_eq!(lines(&page, "ibfabric_sm_sweeps_total"), ["ibfabric_sm_sweeps_total 0"]);
    assert!(lines(&page, "infiniband_port_").is_empty());
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').expect("the line has a value");
        value.parse::<f64>().expect("the text is a number");
    }
}

#[test]
fn counters_have_labels_and_the_64_bit_value_is_used() {
    let port = |number| PortStatus {
        node_guid: Guid(0x10),
        guid: Guid(0x11),
        description: "a \"b\" \\".to_owned(),
        kind: NodeKind::Switch,
        number,
        lid: 3,
        info: None,
    };
    let narrow = PortCounters { xmit_data: 7, symbol_errors: 2, ..PortCounters::zeroed() };
    let wide = PortCountersExtended { xmit_data: 1 << 40, ..PortCountersExtended::zeroed() };
    let mut counts = Counts::default();
    let one = PortCounts { narrow: Some(narrow), wide: Some(wide) };
    counts.ports.insert((Guid(0x10), 1), one);
    counts.ports.insert((Guid(0x10), 2), PortCounts { narrow: Some(narrow), wide: None });
    let state = State {
        ports: Arc::new(vec![port(1), port(2), port(3)]),
        counts: Arc::new(Mutex::new(counts)),
        ..State::default()
    };
    let page = page(&state);
    let of = |port: u8| {
        format!("{{guid=\"0x0000000000000010\",port=\"{port}\",node=\"a \\\"b\\\" \\\\\"}}")
    };
    assert_eq!(
        lines(&page, "infiniband_port_transmit_data_bytes_total"),
        [
            format!("infiniband_port_transmit_data_bytes_total{} {}", of(1), 1u64 << 42),
            format!("infiniband_port_transmit_data_bytes_total{} 28", of(2)),
        ]
    );
    assert_eq!(lines(&page, "infiniband_port_symbol_error_total").len(), 2);
    assert_eq!(lines(&page, "infiniband_port_unicast_transmit_packets_total{").len(), 1);
    assert_eq!(lines(&page, "# TYPE infiniband_port_symbol_error_total counter").len(), 1);
}

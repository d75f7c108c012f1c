//! Compares the `Display` output of the attributes with the output of libibmad 44 (rdma-core) for the
//! same bytes. Only QP1Dropped of PortCounters differs, since libibmad 44 reads QP1Dropped from the
//! bytes of VL15Dropped.

use super::*;

/// Returns test bytes: 1 to 64, then again from 1.
fn counting<const N: usize>() -> [u8; N] {
    std::array::from_fn(|index| index as u8 % 64 + 1)
}

/// Returns test bytes: 251, 244, 237 … (modulo 256), and after 64 bytes again from 251.
fn descending<const N: usize>() -> [u8; N] {
    std::array::from_fn(|index| (251 + 1792 - 7 * (index % 64)) as u8)
}

#[test]
fn port_counters_print_as_libibmad_does() {
    let text = format!("{}", PortCounters::parse(&counting()));
    assert_eq!(
        text,
        "\
PortSelect:......................2\n\
CounterSelect:...................0x0304\n\
SymbolErrorCounter:..............1286\n\
LinkErrorRecoveryCounter:........7\n\
LinkDownedCounter:...............8\n\
PortRcvErrors:...................2314\n\
PortRcvRemotePhysicalErrors:.....2828\n\
PortRcvSwitchRelayErrors:........3342\n\
PortXmitDiscards:................3856\n\
PortXmitConstraintErrors:........17\n\
PortRcvConstraintErrors:.........18\n\
CounterSelect2:..................0x13\n\
LocalLinkIntegrityErrors:........1\n\
ExcessiveBufferOverrunErrors:....4\n\
QP1Dropped:......................5398\n\
VL15Dropped:.....................5912\n\
PortXmitData:....................421141276\n\
PortRcvData:.....................488513312\n\
PortXmitPkts:....................555885348\n\
PortRcvPkts:.....................623257384\n\
PortXmitWait:....................690629420\n\
"
    );
    let text = format!("{}", PortCounters::parse(&descending()));
    assert_eq!(
        text,
        "\
PortSelect:......................244\n\
CounterSelect:...................0xede6\n\
SymbolErrorCounter:..............57304\n\
LinkErrorRecoveryCounter:........209\n\
LinkDownedCounter:...............202\n\
PortRcvErrors:...................50108\n\
PortRcvRemotePhysicalErrors:.....46510\n\
PortRcvSwitchRelayErrors:........42912\n\
PortXmitDiscards:................39314\n\
PortXmitConstraintErrors:........139\n\
PortRcvConstraintErrors:.........132\n\
CounterSelect2:..................0x7d\n\
LocalLinkIntegrityErrors:........7\n\
ExcessiveBufferOverrunErrors:....6\n\
QP1Dropped:......................28520\n\
VL15Dropped:.....................24922\n\
PortXmitData:....................1397507390\n\
PortRcvData:.....................925903138\n\
PortXmitPkts:....................454298886\n\
PortRcvPkts:.....................4294504938\n\
PortXmitWait:....................3822900686\n\
"
    );
}

#[test]
fn extended_counters_print_as_libibmad_does() {
    let text = format!("{:#}", PortCountersExtended::parse(&counting()));
    assert_eq!(
        text,
        "\
PortSelect:......................2\n\
CounterSelect:...................0x0304\n\
PortXmitData:....................651345242494996240\n\
PortRcvData:.....................1230066625199609624\n\
PortXmitPkts:....................1808788007904223008\n\
PortRcvPkts:.....................2387509390608836392\n\
PortUnicastXmitPkts:.............2966230773313449776\n\
PortUnicastRcvPkts:..............3544952156018063160\n\
PortMulticastXmitPkts:...........4123673538722676544\n\
PortMulticastRcvPkts:............72623859790382856\n\
CounterSelect2:..................0x05060708\n\
SymbolErrorCounter:..............651345242494996240\n\
LinkErrorRecoveryCounter:........1230066625199609624\n\
LinkDownedCounter:...............1808788007904223008\n\
PortRcvErrors:...................2387509390608836392\n\
PortRcvRemotePhysicalErrors:.....2966230773313449776\n\
PortRcvSwitchRelayErrors:........3544952156018063160\n\
PortXmitDiscards:................4123673538722676544\n\
PortXmitConstraintErrors:........72623859790382856\n\
PortRcvConstraintErrors:.........651345242494996240\n\
LocalLinkIntegrityErrors:........1230066625199609624\n\
ExcessiveBufferOverrunErrors:....1808788007904223008\n\
VL15Dropped:.....................2387509390608836392\n\
PortXmitWait:....................2966230773313449776\n\
QP1Dropped:......................3544952156018063160\n\
"
    );
    let text = format!("{:#}", PortCountersExtended::parse(&descending()));
    assert_eq!(
        text,
        "\
PortSelect:......................244\n\
CounterSelect:...................0xede6\n\
PortXmitData:....................14104347894758807954\n\
PortRcvData:.....................10053298215826514266\n\
PortXmitPkts:....................6002248536894220578\n\
PortRcvPkts:.....................1951198862273737194\n\
PortUnicastXmitPkts:.............16419233425577261490\n\
PortUnicastRcvPkts:..............12368183746644967802\n\
PortMulticastXmitPkts:...........8317134067712674114\n\
PortMulticastRcvPkts:............18155397573691101642\n\
CounterSelect2:..................0xdfd8d1ca\n\
SymbolErrorCounter:..............14104347894758807954\n\
LinkErrorRecoveryCounter:........10053298215826514266\n\
LinkDownedCounter:...............6002248536894220578\n\
PortRcvErrors:...................1951198862273737194\n\
PortRcvRemotePhysicalErrors:.....16419233425577261490\n\
PortRcvSwitchRelayErrors:........12368183746644967802\n\
PortXmitDiscards:................8317134067712674114\n\
PortXmitConstraintErrors:........18155397573691101642\n\
PortRcvConstraintErrors:.........14104347894758807954\n\
LocalLinkIntegrityErrors:........10053298215826514266\n\
ExcessiveBufferOverrunErrors:....6002248536894220578\n\
VL15Dropped:.....................1951198862273737194\n\
PortXmitWait:....................16419233425577261490\n\
QP1Dropped:......................12368183746644967802\n\
"
    );
}

#[test]
fn receive_errors_print_as_libibmad_does() {
    let text = format!("{}", PortRcvErrorDetails::parse(&counting()));
    assert_eq!(
        text,
        "\
PortSelect:......................2\n\
CounterSelect:...................0x0304\n\
PortLocalPhysicalErrors:.........1286\n\
PortMalformedPktErrors:..........1800\n\
PortBufferOverrunErrors:.........2314\n\
PortDLIDMappingErrors:...........2828\n\
PortVLMappingErrors:.............3342\n\
PortLoopingErrors:...............3856\n\
"
    );
    let text = format!("{}", PortRcvErrorDetails::parse(&descending()));
    assert_eq!(
        text,
        "\
PortSelect:......................244\n\
CounterSelect:...................0xede6\n\
PortLocalPhysicalErrors:.........57304\n\
PortMalformedPktErrors:..........53706\n\
PortBufferOverrunErrors:.........50108\n\
PortDLIDMappingErrors:...........46510\n\
PortVLMappingErrors:.............42912\n\
PortLoopingErrors:...............39314\n\
"
    );
}

#[test]
fn discards_print_as_libibmad_does() {
    let text = format!("{}", PortXmitDiscardDetails::parse(&counting()));
    assert_eq!(
        text,
        "\
PortSelect:......................2\n\
CounterSelect:...................0x0304\n\
PortInactiveDiscards:............1286\n\
PortNeighborMTUDiscards:.........1800\n\
PortSwLifetimeLimitDiscards:.....2314\n\
PortSwHOQLifetimeLimitDiscards:..2828\n\
"
    );
    let text = format!("{}", PortXmitDiscardDetails::parse(&descending()));
    assert_eq!(
        text,
        "\
PortSelect:......................244\n\
CounterSelect:...................0xede6\n\
PortInactiveDiscards:............57304\n\
PortNeighborMTUDiscards:.........53706\n\
PortSwLifetimeLimitDiscards:.....50108\n\
PortSwHOQLifetimeLimitDiscards:..46510\n\
"
    );
}

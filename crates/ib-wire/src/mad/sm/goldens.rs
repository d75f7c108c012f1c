//! Compares the `Display` output of subnet management attributes with the output of libibmad 44
//! (rdma-core) for the same bytes. The M_Key is hidden, as in the output of smpquery.

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
fn node_info_prints_as_libibmad_does() {
    let text = format!("{}", NodeInfo::parse(&counting()));
    assert_eq!(
        text,
        "\
BaseVers:........................1\n\
ClassVers:.......................2\n\
NodeType:........................Router\n\
NumPorts:........................4\n\
SystemGuid:......................0x05060708090a0b0c\n\
Guid:............................0x0d0e0f1011121314\n\
PortGuid:........................0x15161718191a1b1c\n\
PartCap:.........................7454\n\
DevId:...........................0x1f20\n\
Revision:........................0x21222324\n\
LocalPort:.......................37\n\
VendorId:........................0x262728\n\
"
    );
    let text = format!("{}", NodeInfo::parse(&descending()));
    assert_eq!(
        text,
        "\
BaseVers:........................251\n\
ClassVers:.......................244\n\
NodeType:........................?(237)?\n\
NumPorts:........................230\n\
SystemGuid:......................0xdfd8d1cac3bcb5ae\n\
Guid:............................0xa7a099928b847d76\n\
PortGuid:........................0x6f68615a534c453e\n\
PartCap:.........................14128\n\
DevId:...........................0x2922\n\
Revision:........................0x1b140d06\n\
LocalPort:.......................255\n\
VendorId:........................0xf8f1ea\n\
"
    );
}

#[test]
fn switch_info_prints_as_libibmad_does() {
    let text = format!("{}", SwitchInfo::parse(&counting()));
    assert_eq!(
        text,
        "\
LinearFdbCap:....................258\n\
RandomFdbCap:....................772\n\
McastFdbCap:.....................1286\n\
LinearFdbTop:....................1800\n\
DefPort:.........................9\n\
DefMcastPrimPort:................10\n\
DefMcastNotPrimPort:.............11\n\
LifeTime:........................1\n\
StateChange:.....................1\n\
OptSLtoVLMapping:................0\n\
LidsPerPort:.....................3342\n\
PartEnforceCap:..................3856\n\
InboundPartEnf:..................0\n\
OutboundPartEnf:.................0\n\
FilterRawInbound:................0\n\
FilterRawOutbound:...............1\n\
EnhancedPort0:...................0\n\
MulticastFDBTop:.................0x1314\n\
"
    );
    let text = format!("{}", SwitchInfo::parse(&descending()));
    assert_eq!(
        text,
        "\
LinearFdbCap:....................64500\n\
RandomFdbCap:....................60902\n\
McastFdbCap:.....................57304\n\
LinearFdbTop:....................53706\n\
DefPort:.........................195\n\
DefMcastPrimPort:................188\n\
DefMcastNotPrimPort:.............181\n\
LifeTime:........................21\n\
StateChange:.....................1\n\
OptSLtoVLMapping:................2\n\
LidsPerPort:.....................42912\n\
PartEnforceCap:..................39314\n\
InboundPartEnf:..................1\n\
OutboundPartEnf:.................0\n\
FilterRawInbound:................0\n\
FilterRawOutbound:...............0\n\
EnhancedPort0:...................1\n\
MulticastFDBTop:.................0x7d76\n\
"
    );
}

#[test]
fn port_info_prints_as_smpquery_does() {
    let text = format!("{}", PortInfo::parse(&counting()));
    assert_eq!(
        text,
        "\
Mkey:............................<not displayed>\n\
GidPrefix:.......................0x090a0b0c0d0e0f10\n\
Lid:.............................4370\n\
SMLid:...........................4884\n\
CapMask:.........................0x15161718\n\
\t\t\t\tIsTrapSupported\n\
\t\t\t\tIsOptionalIPDSupported\n\
\t\t\t\tIsPKeyNVRAM\n\
\t\t\t\tIsLedInfoSupported\n\
\t\t\t\tIsSMdisabled\n\
\t\t\t\tIsPkeySwitchExternalPortTrapSupported\n\
\t\t\t\tIsSNMPTunnelingSupported\n\
\t\t\t\tIsReinitSupported\n\
\t\t\t\tIsVendorClassSupported\n\
\t\t\t\tIsLinkRoundTripLatencySupported\n\
\t\t\t\tIsOtherLocalChangesNoticeSupported\n\
\t\t\t\tIsVendorSpecificMadsTableSupported\n\
DiagCode:........................0x191a\n\
MkeyLeasePeriod:.................6940\n\
LocalPort:.......................29\n\
LinkWidthEnabled:................4X or 8X or 12X or 2X\n\
LinkWidthSupported:..............1X or 4X or 8X or 12X or 2X\n\
LinkWidthActive:.................undefined (32)\n\
LinkSpeedSupported:..............5.0 Gbps (IBA extension)\n\
LinkState:.......................Down\n\
PhysLinkState:...................Polling\n\
LinkDownDefState:................Polling\n\
ProtectBits:.....................0\n\
LMC:.............................3\n\
LinkSpeedActive:.................5.0 Gbps\n\
LinkSpeedEnabled:................10.0 Gbps (IBA extension)\n\
NeighborMTU:.....................512\n\
SMSL:............................5\n\
VLCap:...........................VL0-1\n\
InitType:........................0x06\n\
VLHighLimit:.....................39\n\
VLArbHighCap:....................40\n\
VLArbLowCap:.....................41\n\
InitReply:.......................0x02\n\
MtuCap:..........................?(10)\n\
VLStallCount:....................1\n\
HoqLife:.........................11\n\
OperVLs:.........................VL0-1\n\
PartEnforceInb:..................1\n\
PartEnforceOutb:.................1\n\
FilterRawInb:....................0\n\
FilterRawOutb:...................0\n\
MkeyViolations:..................11566\n\
PkeyViolations:..................12080\n\
QkeyViolations:..................12594\n\
GuidCap:.........................51\n\
ClientReregister:................0\n\
McastPkeyTrapSuppressionEnabled:.1\n\
SubnetTimeout:...................20\n\
RespTimeVal:.....................21\n\
LocalPhysErr:....................3\n\
OverrunErr:......................6\n\
MaxCreditHint:...................14136\n\
RoundTrip:.......................3816252\n\
CapabilityMask2:.................0x3d3e\n\
\t\t\t\tIsPortInfoExtendedSupported\n\
\t\t\t\tIsVirtualizationSupported\n\
\t\t\t\tIsSwitchPortStateTableSupported\n\
\t\t\t\tIsLinkWidth2xSupported\n\
\t\t\t\tIsLinkSpeedHDRSupported\n\
\t\t\t\tIsPartitionTopSupported\n\
\t\t\t\tIsLinkSpeedNDRSupported\n\
LinkSpeedExtActive:..............undefined (3)\n\
LinkSpeedExtSupported:...........14.0625 Gbps or 25.78125 Gbps or 53.125 Gbps or 106.25 Gbps\n\
LinkSpeedExtEnabled:.............0\n\
"
    );
    let text = format!("{}", PortInfo::parse(&descending()));
    assert_eq!(
        text,
        "\
Mkey:............................<not displayed>\n\
GidPrefix:.......................0xc3bcb5aea7a09992\n\
Lid:.............................35716\n\
SMLid:...........................32118\n\
CapMask:.........................0x6f68615a\n\
\t\t\t\tIsSM\n\
\t\t\t\tIsTrapSupported\n\
\t\t\t\tIsOptionalIPDSupported\n\
\t\t\t\tIsSLMappingSupported\n\
\t\t\t\tIsPKeyNVRAM\n\
\t\t\t\tIsExtendedSpeedsSupported\n\
\t\t\t\tIsDeviceManagementSupported\n\
\t\t\t\tIsDRNoticeSupported\n\
\t\t\t\tIsCapabilityMaskNoticeSupported\n\
\t\t\t\tIsLinkRoundTripLatencySupported\n\
\t\t\t\tIsClientRegistrationSupported\n\
\t\t\t\tIsOtherLocalChangesNoticeSupported\n\
\t\t\t\tIsLinkSpeedWidthPairsTableSupported\n\
\t\t\t\tIsMcastPkeyTrapSuppressionSupported\n\
\t\t\t\tIsMulticastFDBTopSupported\n\
DiagCode:........................0x534c\n\
MkeyLeasePeriod:.................17726\n\
LocalPort:.......................55\n\
LinkWidthEnabled:................2X or undefined (48)\n\
LinkWidthSupported:..............1X or 12X or undefined (41)\n\
LinkWidthActive:.................undefined (34)\n\
LinkSpeedSupported:..............2.5 Gbps\n\
LinkState:.......................?(11)\n\
PhysLinkState:...................Sleep\n\
LinkDownDefState:................?(4)\n\
ProtectBits:.....................0\n\
LMC:.............................5\n\
LinkSpeedActive:.................Extended speed\n\
LinkSpeedEnabled:................5.0 Gbps or 10.0 Gbps (IBA extension)\n\
NeighborMTU:.....................?(15)\n\
SMSL:............................15\n\
VLCap:...........................?(15)\n\
InitType:........................0x08\n\
VLHighLimit:.....................241\n\
VLArbHighCap:....................234\n\
VLArbLowCap:.....................227\n\
InitReply:.......................0x0d\n\
MtuCap:..........................?(12)\n\
VLStallCount:....................6\n\
HoqLife:.........................21\n\
OperVLs:.........................?(12)\n\
PartEnforceInb:..................1\n\
PartEnforceOutb:.................1\n\
FilterRawInb:....................1\n\
FilterRawOutb:...................0\n\
MkeyViolations:..................51136\n\
PkeyViolations:..................47538\n\
QkeyViolations:..................43940\n\
GuidCap:.........................157\n\
ClientReregister:................1\n\
McastPkeyTrapSuppressionEnabled:.0\n\
SubnetTimeout:...................22\n\
RespTimeVal:.....................15\n\
LocalPhysErr:....................8\n\
OverrunErr:......................8\n\
MaxCreditHint:...................33146\n\
RoundTrip:.......................7103838\n\
CapabilityMask2:.................0x5750\n\
\t\t\t\tIsLinkWidth2xSupported\n\
\t\t\t\tIsMKeyProtectBitsExtSupported\n\
\t\t\t\tIsPartitionTopSupported\n\
\t\t\t\tIsEnhancedQoSArbiterSupported\n\
\t\t\t\tIsLinkSpeedNDRSupported\n\
LinkSpeedExtActive:..............53.125 Gbps\n\
LinkSpeedExtSupported:...........14.0625 Gbps or 106.25 Gbps\n\
LinkSpeedExtEnabled:.............25.78125 Gbps\n\
"
    );
}

#[test]
fn mlnx_ext_port_info_prints_as_libibmad_does() {
    let text = format!("{}", MlnxExtPortInfo::parse(&counting()));
    assert_eq!(
        text,
        "\
StateChangeEnable:...............0x04\n\
LinkSpeedSupported:..............0x08\n\
LinkSpeedEnabled:................0x0c\n\
LinkSpeedActive:.................0x10\n\
"
    );
    let text = format!("{}", MlnxExtPortInfo::parse(&descending()));
    assert_eq!(
        text,
        "\
StateChangeEnable:...............0xe6\n\
LinkSpeedSupported:..............0xca\n\
LinkSpeedEnabled:................0xae\n\
LinkSpeedActive:.................0x92\n\
"
    );
}

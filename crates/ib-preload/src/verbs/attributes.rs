//! Attributes of the device, its port and its queue pairs, in the formats of the uverbs ABI.

use ib_device::Device;
use ib_hca::{AccessFlags, HcaConfig, QpAttr, QpState, QpType};
use ib_link::Route;
use ib_types::{Gid, Mtu, PKey, Psn, QKey, Qpn, ServiceLevel};

use super::abi::{DeviceAttributes, ModifyQp, PortAttributes, QpDestination};
use crate::errno::Errno;

/// Maximum number of completions in a CQ, as in rxe.
pub(super) const MAX_CQE: u32 = (1 << 15) - 1;

/// Maximum number of READs and atomics of a queue pair in flight in each direction.
const MAX_RD_ATOMIC: u32 = 128;

/// Device capabilities (`ib_uverbs_device_cap_flags`): UD address vectors bound to a port, port events, system image
/// GUID, RNR NAKs, SRQ resizing, memory windows of type 1 and 2B.
const CAPABILITIES: u32 = 1 << 6 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 17 | 1 << 24;

/// Width 4X (`IB_WIDTH_4X`).
const WIDTH_4X: u8 = 2;

/// Returns the attributes of the device.
pub(super) fn device(config: &HcaConfig, p_keys: usize) -> DeviceAttributes {
    let most = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let objects = most(config.max_objects);
    DeviceAttributes {
        fw_ver: 0,
        node_guid: config.node_guid.0.to_be_bytes(),
        sys_image_guid: config.node_guid.0.to_be_bytes(),
        max_mr_size: u64::MAX,
        // The vendor ID is that of rxe, because this project has no OUI.
        vendor_id: 0xff_ffff,
        page_size_cap: 0xffff_f000,
        max_qp: most(config.max_qp()),
        max_qp_wr: config.max_qp_wr,
        device_cap_flags: CAPABILITIES,
        max_sge: config.max_sge,
        max_sge_rd: config.max_sge,
        max_cq: objects,
        max_cqe: MAX_CQE,
        max_mr: most(config.max_mr),
        // In the engine, the maximum number of memory windows equals that of regions.
        max_mw: most(config.max_mr),
        max_pd: objects,
        max_qp_rd_atom: MAX_RD_ATOMIC,
        max_res_rd_atom: MAX_RD_ATOMIC.saturating_mul(objects),
        max_qp_init_rd_atom: MAX_RD_ATOMIC,
        // Atomic operations are atomic with respect to other operations of this device
        // (`IB_ATOMIC_HCA`).
        atomic_cap: 1,
        max_mcast_grp: objects,
        max_mcast_qp_attach: objects,
        max_total_mcast_qp_attach: objects,
        max_ah: objects,
        max_srq: objects,
        max_srq_wr: config.max_qp_wr,
        max_srq_sge: config.max_sge,
        max_pkeys: p_keys.try_into().unwrap_or(u16::MAX),
        local_ca_ack_delay: 15,
        phys_port_cnt: 1,
        ..DeviceAttributes::default()
    }
}

/// Attributes of the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) is_infiniband: bool,
    pub(super) is_active: bool,
    pub(super) mtu: Mtu,
    pub(super) node_guid: u64,
    pub(super) gid: Gid,
    pub(super) lid: u16,
    pub(super) lmc: u8,
    pub(super) sm_lid: u16,
    pub(super) sm_sl: u8,
    pub(super) p_keys: Vec<u16>,
    pub(super) node_description: String,
    /// Name of the network interface; `None` if the port is InfiniBand.
    pub(super) interface: Option<String>,
}

impl Port {
    /// Returns the attributes of a device's port.
    pub(super) fn of(device: &mut Device) -> Self {
        let config = device.hca().config();
        let (node_guid, gid, mtu) = (config.node_guid.0, config.gids[0], config.active_mtu);
        let node_description = device.name().to_owned();
        match device.attached() {
            Some(attached) => {
                let details = attached.details();
                Self {
                    is_infiniband: true,
                    is_active: details.is_active,
                    mtu: details.mtu,
                    node_guid,
                    gid: details.port.gid(),
                    lid: details.port.lid,
                    lmc: details.port.lmc,
                    sm_lid: details.port.sm_lid,
                    sm_sl: details.port.sm_sl.get(),
                    p_keys: details.p_keys.clone(),
                    node_description,
                    interface: None,
                }
            }
            None => Self {
                is_infiniband: false,
                is_active: true,
                mtu,
                node_guid,
                gid,
                lid: 0,
                lmc: 0,
                sm_lid: 0,
                sm_sl: 0,
                p_keys: vec![PKey::DEFAULT.0],
                interface: Some(node_description.clone()),
                node_description,
            },
        }
    }

    /// Returns the attributes in the format of QUERY_PORT.
    pub(super) fn attributes(&self) -> PortAttributes {
        const DOWN: u8 = 1;
        const ACTIVE: u8 = 4;
        PortAttributes {
            // `IB_PORT_CM_SUP`
            port_cap_flags: 1 << 16,
            max_msg_sz: 1 << 30,
            gid_tbl_len: 1,
            pkey_tbl_len: self.p_keys.len().try_into().unwrap_or(u16::MAX),
            lid: self.lid,
            sm_lid: self.sm_lid,
            state: if self.is_active { ACTIVE } else { DOWN },
            max_mtu: Mtu::B4096.code(),
            active_mtu: self.mtu.code(),
            lmc: self.lmc,
            max_vl_num: 1,
            sm_sl: self.sm_sl,
            active_width: WIDTH_4X,
            // EDR
            active_speed: 32,
            phys_state: if self.is_active { 5 } else { 3 },
            link_layer: if self.is_infiniband { 1 } else { 2 },
            ..PortAttributes::default()
        }
    }

    /// Converts the path of an address handle or of a connected queue pair from the uverbs ABI to the
    /// engine's [`Route`].
    ///
    /// # Errors
    /// Fails with `EINVAL` if the port, the GID index or the service level does not exist, or if
    /// the port is Ethernet and the path has no GRH.
    pub(super) fn route(&self, path: &QpDestination) -> Result<Route, Errno> {
        let is_global = path.is_global != 0;
        if path.port_num != 1
            || is_global && path.sgid_index != 0
            || !is_global && !self.is_infiniband
        {
            return Err(Errno::INVALID);
        }
        let route = Route {
            source: self.gid,
            // The peer may be an HCA of another vendor. The queue pair accepts packets whose ICRC could be checked
            // only in part, because the IP identification is unknown.
            is_weak: !self.is_infiniband,
            sl: ServiceLevel::new(path.sl).ok_or(Errno::INVALID)?,
            ..Route::default()
        };
        let route = if self.is_infiniband {
            let bits = u16::from(path.src_path_bits) & ((1 << self.lmc) - 1);
            Route { slid: self.lid | bits, dlid: path.dlid, ..route }
        } else {
            route
        };
        if !is_global {
            return Ok(route);
        }
        Ok(Route {
            destination: Gid(u128::from_be_bytes(path.dgid)),
            is_global: true,
            traffic_class: path.traffic_class,
            flow_label: path.flow_label & 0xf_ffff,
            hop_limit: if path.hop_limit == 0 { route.hop_limit } else { path.hop_limit },
            ..route
        })
    }
}

/// Bits of the attribute mask of MODIFY_QP (`ib_qp_attr_mask`).
pub(super) mod mask {
    pub(crate) const STATE: u32 = 1;
    pub(crate) const CUR_STATE: u32 = 1 << 1;
    pub(crate) const ACCESS_FLAGS: u32 = 1 << 3;
    pub(crate) const PKEY_INDEX: u32 = 1 << 4;
    pub(crate) const PORT: u32 = 1 << 5;
    pub(crate) const QKEY: u32 = 1 << 6;
    pub(crate) const AV: u32 = 1 << 7;
    pub(crate) const PATH_MTU: u32 = 1 << 8;
    pub(crate) const TIMEOUT: u32 = 1 << 9;
    pub(crate) const RETRY_CNT: u32 = 1 << 10;
    pub(crate) const RNR_RETRY: u32 = 1 << 11;
    pub(crate) const RQ_PSN: u32 = 1 << 12;
    pub(crate) const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    pub(crate) const MIN_RNR_TIMER: u32 = 1 << 15;
    pub(crate) const SQ_PSN: u32 = 1 << 16;
    pub(crate) const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub(crate) const DEST_QPN: u32 = 1 << 20;
    /// All bits of the constants above, and `IB_QP_EN_SQD_ASYNC_NOTIFY`. The latter bit has no effect, because every
    /// drained queue pair reports the event.
    pub(crate) const KNOWN: u32 = 0x13_bfff;
}

/// Returns the changes that a MODIFY_QP command requests.
///
/// # Errors
/// Fails with `EINVAL` for invalid values, and with `EOPNOTSUPP` for alternate paths and rate
/// limits.
pub(super) fn change(
    command: &ModifyQp,
    (qp_type, current): (QpType, QpState),
    port: &Port,
) -> Result<QpAttr, Errno> {
    let has = |bit: u32| command.attr_mask & bit != 0;
    if command.attr_mask & !mask::KNOWN != 0 {
        return Err(Errno::NOT_SUPPORTED);
    }
    if has(mask::PORT) && command.port_num != 1
        || has(mask::CUR_STATE) && state_of(command.cur_qp_state) != Some(current)
    {
        return Err(Errno::INVALID);
    }
    let to = if has(mask::STATE) {
        Some(state_of(command.qp_state).ok_or(Errno::INVALID)?)
    } else {
        None
    };
    if (current, to) == (QpState::Reset, Some(QpState::Init)) && !has(mask::PORT) {
        return Err(Errno::INVALID);
    }
    let p_key = port.p_keys.get(usize::from(command.pkey_index)).copied();
    let is_ud = qp_type == QpType::Ud;
    Ok(QpAttr {
        qp_state: to,
        pkey: has(mask::PKEY_INDEX).then(|| p_key.ok_or(Errno::INVALID)).transpose()?.map(PKey),
        qkey: has(mask::QKEY).then_some(QKey(command.qkey)),
        qp_access_flags: has(mask::ACCESS_FLAGS)
            .then_some(AccessFlags(command.qp_access_flags & AccessFlags::ALL.0)),
        route: has(mask::AV).then(|| port.route(&command.dest)).transpose()?,
        path_mtu: (has(mask::PATH_MTU) && !is_ud)
            .then(|| Mtu::from_code(command.path_mtu).ok_or(Errno::INVALID))
            .transpose()?,
        dest_qp_num: has(mask::DEST_QPN).then(|| Qpn::truncated(command.dest_qp_num)),
        rq_psn: has(mask::RQ_PSN).then(|| Psn::truncated(command.rq_psn)),
        sq_psn: has(mask::SQ_PSN).then(|| Psn::truncated(command.sq_psn)),
        max_rd_atomic: has(mask::MAX_QP_RD_ATOMIC).then_some(command.max_rd_atomic),
        max_dest_rd_atomic: has(mask::MAX_DEST_RD_ATOMIC).then_some(command.max_dest_rd_atomic),
        min_rnr_timer: has(mask::MIN_RNR_TIMER).then_some(command.min_rnr_timer),
        timeout: has(mask::TIMEOUT).then_some(command.timeout),
        retry_cnt: has(mask::RETRY_CNT).then_some(command.retry_cnt),
        rnr_retry: has(mask::RNR_RETRY).then_some(command.rnr_retry),
    })
}

/// Returns the queue pair state with this number (`ib_qp_state`).
fn state_of(number: u8) -> Option<QpState> {
    QpState::ALL.get(usize::from(number)).copied()
}

/// Returns the number of a queue pair state (`ib_qp_state`).
pub(super) fn state_number(state: QpState) -> u8 {
    let number = QpState::ALL.iter().position(|&it| it == state);
    number.expect("`ALL` has all states") as u8
}

//! Layouts of the `rdma_cm` ABI, version 4: structures of commands and of their responses. Fields are in the byte order
//! of the machine, except addresses and path records.
//!
//! Sources: `rdma_user_cm.h`, `ib_user_sa.h` and `ib_user_verbs.h` of the Linux kernel (UAPI headers).

use crate::layout::{Bytes, Field, structures};

/// Maximum length in bytes of private data in commands and events (`RDMA_MAX_PRIVATE_DATA`).
pub(super) const PRIVATE_DATA: usize = 256;

structures! {
    /// Header of a command (`rdma_ucm_cmd_hdr`).
    struct Header: 8 {
        command: u32,
        input: u16,
        output: u16,
    }

    /// CREATE_ID (`rdma_ucm_create_id`).
    struct CreateId: 24 {
        uid: u64,
        response: u64,
        port_space: u16,
        qp_type: u8,
        reserved: [u8; 5],
    }

    /// DESTROY_ID and LEAVE_MCAST (`rdma_ucm_destroy_id`).
    struct DestroyId: 16 {
        response: u64,
        id: u32,
        reserved: u32,
    }

    /// BIND_IP (`rdma_ucm_bind_ip`).
    struct BindIp: 40 {
        response: u64,
        address: [u8; 28],
        id: u32,
    }

    /// BIND (`rdma_ucm_bind`).
    struct Bind: 136 {
        id: u32,
        address_size: u16,
        reserved: u16,
        address: Bytes<128>,
    }

    /// RESOLVE_IP (`rdma_ucm_resolve_ip`).
    struct ResolveIp: 64 {
        source: [u8; 28],
        destination: [u8; 28],
        id: u32,
        timeout_ms: u32,
    }

    /// RESOLVE_ADDR (`rdma_ucm_resolve_addr`).
    struct ResolveAddr: 272 {
        id: u32,
        timeout_ms: u32,
        source_size: u16,
        destination_size: u16,
        reserved: u32,
        source: Bytes<128>,
        destination: Bytes<128>,
    }

    /// RESOLVE_ROUTE (`rdma_ucm_resolve_route`).
    struct ResolveRoute: 8 {
        id: u32,
        timeout_ms: u32,
    }

    /// QUERY and QUERY_ROUTE (`rdma_ucm_query`).
    struct Query: 16 {
        response: u64,
        id: u32,
        option: u32,
    }

    /// A path record as the `ib_user_path_rec` of QUERY_ROUTE. LIDs, flow label and P_Key are big-endian.
    struct UserPath: 64 {
        dgid: [u8; 16],
        sgid: [u8; 16],
        dlid: [u8; 2],
        slid: [u8; 2],
        raw_traffic: u32,
        flow_label: [u8; 4],
        reversible: u32,
        mtu: u32,
        p_key: [u8; 2],
        hop_limit: u8,
        traffic_class: u8,
        numb_path: u8,
        sl: u8,
        mtu_selector: u8,
        rate_selector: u8,
        rate: u8,
        life_time_selector: u8,
        life_time: u8,
        preference: u8,
    }

    /// Response of QUERY_ROUTE (`rdma_ucm_query_route_resp`) without the device index, which librdmacm initializes
    /// itself for kernels that lack the field.
    struct RouteResponse: 200 {
        node_guid: [u8; 8],
        paths: [UserPath; 2],
        source: [u8; 28],
        destination: [u8; 28],
        num_paths: u32,
        port_num: u8,
        reserved: [u8; 3],
    }

    /// Response of QUERY for addresses and for GIDs (`rdma_ucm_query_addr_resp`), without the device index.
    struct AddressResponse: 272 {
        node_guid: [u8; 8],
        port_num: u8,
        reserved: u8,
        p_key: [u8; 2],
        source_size: u16,
        destination_size: u16,
        source: Bytes<128>,
        destination: Bytes<128>,
    }

    /// Response of QUERY for paths (`rdma_ucm_query_path_resp`) before the paths.
    struct PathResponse: 8 {
        num_paths: u32,
        reserved: u32,
    }

    /// A path record in the format of the SA (`ib_path_rec_data`).
    struct PathData: 72 {
        flags: u32,
        reserved: u32,
        record: Bytes<64>,
    }

    /// Parameters of a connection (`rdma_ucm_conn_param`).
    struct ConnectionParam: 272 {
        qp_num: u32,
        q_key: u32,
        private_data: Bytes<PRIVATE_DATA>,
        private_data_len: u8,
        srq: u8,
        responder_resources: u8,
        initiator_depth: u8,
        flow_control: u8,
        retry_count: u8,
        rnr_retry_count: u8,
        valid: u8,
    }

    /// Address vector (`ib_uverbs_ah_attr`).
    struct AddressVector: 32 {
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        reserved: u8,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
        reserved_2: u8,
    }

    /// Parameters of a UD service (`rdma_ucm_ud_param`).
    struct DatagramParam: 304 {
        qp_num: u32,
        q_key: u32,
        address: AddressVector,
        private_data: Bytes<PRIVATE_DATA>,
        private_data_len: u8,
        reserved: [u8; 7],
    }

    /// Enhanced connection establishment (`rdma_ucm_ece`).
    struct Ece: 8 {
        vendor_id: u32,
        options: u32,
    }

    /// CONNECT (`rdma_ucm_connect`) without the ECE, which older programs do not send.
    struct Connect: 280 {
        parameters: ConnectionParam,
        id: u32,
        reserved: u32,
    }

    /// ACCEPT (`rdma_ucm_accept`) without the ECE.
    struct Accept: 288 {
        uid: u64,
        parameters: ConnectionParam,
        id: u32,
        reserved: u32,
    }

    /// LISTEN (`rdma_ucm_listen`).
    struct Listen: 8 {
        id: u32,
        backlog: i32,
    }

    /// REJECT (`rdma_ucm_reject`).
    struct Reject: 264 {
        id: u32,
        private_data_len: u8,
        reason: u8,
        reserved: [u8; 2],
        private_data: Bytes<PRIVATE_DATA>,
    }

    /// INIT_QP_ATTR (`rdma_ucm_init_qp_attr`).
    struct InitQpAttr: 16 {
        response: u64,
        id: u32,
        qp_state: u32,
    }

    /// Response of INIT_QP_ATTR (`ib_uverbs_qp_attr`).
    struct QpAttributes: 144 {
        mask: u32,
        qp_state: u32,
        cur_qp_state: u32,
        path_mtu: u32,
        path_mig_state: u32,
        q_key: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        access_flags: u32,
        address: AddressVector,
        alternate_address: AddressVector,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        p_key_index: u16,
        alternate_p_key_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alternate_port_num: u8,
        alternate_timeout: u8,
        reserved: [u8; 5],
    }

    /// NOTIFY (`rdma_ucm_notify`).
    struct Notify: 8 {
        id: u32,
        event: u32,
    }

    /// JOIN_IP_MCAST (`rdma_ucm_join_ip_mcast`).
    struct JoinIpMcast: 48 {
        response: u64,
        uid: u64,
        address: [u8; 28],
        id: u32,
    }

    /// JOIN_MCAST (`rdma_ucm_join_mcast`).
    struct JoinMcast: 152 {
        response: u64,
        uid: u64,
        id: u32,
        address_size: u16,
        join_flags: u16,
        address: Bytes<128>,
    }

    /// Event (`rdma_ucm_event_resp`) before its parameters.
    struct EventHead: 20 {
        uid: u64,
        id: u32,
        event: u32,
        status: i32,
    }

    /// SET_OPTION (`rdma_ucm_set_option`).
    struct SetOption: 24 {
        value: u64,
        id: u32,
        level: u32,
        name: u32,
        length: u32,
    }

    /// MIGRATE_ID (`rdma_ucm_migrate_id`).
    struct MigrateId: 16 {
        response: u64,
        id: u32,
        fd: i32,
    }
}

impl Field for [UserPath; 2] {
    const SIZE: usize = 2 * UserPath::SIZE;

    fn read(bytes: &[u8]) -> Self {
        [UserPath::read(bytes), UserPath::read(&bytes[UserPath::SIZE..])]
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|path| path.write(bytes));
    }
}

/// Size of an event in bytes (`rdma_ucm_event_resp`).
pub(super) const EVENT: usize = EventHead::SIZE + DatagramParam::SIZE + 4 + Ece::SIZE;

/// Size of an event without the fields that older programs do not read: the reserved word and the ECE.
pub(super) const SHORT_EVENT: usize = EventHead::SIZE + DatagramParam::SIZE;

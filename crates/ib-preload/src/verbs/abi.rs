//! Layouts of the uverbs ABI: structures of write commands and of their responses, in the byte order of the machine.
//!
//! Sources: `ib_user_verbs.h` and `rdma_user_rxe.h` of the Linux kernel (UAPI headers).

use crate::layout::structures;
pub(super) use crate::layout::{Field, bytes_of};

structures! {
    /// Header of a write command (`ib_uverbs_cmd_hdr`).
    struct CommandHeader: 8 {
        command: u32,
        in_words: u16,
        out_words: u16,
    }

    /// Second header of an extended write command, after `CommandHeader` (`ib_uverbs_ex_cmd_hdr`).
    struct ExtendedHeader: 16 {
        response: u64,
        provider_in_words: u16,
        provider_out_words: u16,
        reserved: u32,
    }

    /// Response of GET_CONTEXT (`ib_uverbs_get_context_resp`).
    struct ContextResponse: 8 {
        async_fd: u32,
        num_comp_vectors: u32,
    }

    /// Response of QUERY_DEVICE (`ib_uverbs_query_device_resp`).
    struct DeviceAttributes: 176 {
        fw_ver: u64,
        node_guid: [u8; 8],
        sys_image_guid: [u8; 8],
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: u32,
        max_qp_wr: u32,
        device_cap_flags: u32,
        max_sge: u32,
        max_sge_rd: u32,
        max_cq: u32,
        max_cqe: u32,
        max_mr: u32,
        max_pd: u32,
        max_qp_rd_atom: u32,
        max_ee_rd_atom: u32,
        max_res_rd_atom: u32,
        max_qp_init_rd_atom: u32,
        max_ee_init_rd_atom: u32,
        atomic_cap: u32,
        max_ee: u32,
        max_rdd: u32,
        max_mw: u32,
        max_raw_ipv6_qp: u32,
        max_raw_ethy_qp: u32,
        max_mcast_grp: u32,
        max_mcast_qp_attach: u32,
        max_total_mcast_qp_attach: u32,
        max_ah: u32,
        max_fmr: u32,
        max_map_per_fmr: u32,
        max_srq: u32,
        max_srq_wr: u32,
        max_srq_sge: u32,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
        reserved: [u8; 4],
    }

    /// Second part of the response of the extended QUERY_DEVICE (`ib_uverbs_ex_query_device_resp`).
    /// Fields of unsupported features are zero: on-demand paging, RSS, tag matching, device memory
    /// and XRC.
    struct ExtendedAttributes: 128 {
        comp_mask: u32,
        response_length: u32,
        odp_caps: [u8; 24],
        timestamp_mask: u64,
        hca_core_clock: u64,
        device_cap_flags_ex: u64,
        rss_caps: [u8; 16],
        max_wq_type_rq: u32,
        raw_packet_caps: u32,
        tm_caps: [u8; 24],
        cq_moderation_caps: [u8; 8],
        max_dm_size: u64,
        xrc_odp_caps: u32,
        reserved: u32,
    }

    /// Fields of QUERY_PORT after the response address (`ib_uverbs_query_port`).
    struct QueryPort: 8 {
        port_num: u8,
        reserved: [u8; 7],
    }

    /// Response of QUERY_PORT (`ib_uverbs_query_port_resp`).
    struct PortAttributes: 40 {
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        gid_tbl_len: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        state: u8,
        max_mtu: u8,
        active_mtu: u8,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        reserved: u8,
    }

    /// REG_MR (`ib_uverbs_reg_mr`).
    struct RegMr: 32 {
        start: u64,
        length: u64,
        hca_va: u64,
        pd_handle: u32,
        access_flags: u32,
    }

    /// Response of REG_MR (`ib_uverbs_reg_mr_resp`).
    struct RegMrResponse: 12 {
        mr_handle: u32,
        lkey: u32,
        rkey: u32,
    }

    /// REREG_MR (`ib_uverbs_rereg_mr`).
    struct ReregMr: 40 {
        mr_handle: u32,
        flags: u32,
        start: u64,
        length: u64,
        hca_va: u64,
        pd_handle: u32,
        access_flags: u32,
    }

    /// Response of REREG_MR (`ib_uverbs_rereg_mr_resp`).
    struct ReregMrResponse: 8 {
        lkey: u32,
        rkey: u32,
    }

    /// ALLOC_MW (`ib_uverbs_alloc_mw`).
    struct AllocMw: 8 {
        pd_handle: u32,
        mw_type: u8,
        reserved: [u8; 3],
    }

    /// Response of ALLOC_MW (`ib_uverbs_alloc_mw_resp`).
    struct AllocMwResponse: 8 {
        mw_handle: u32,
        rkey: u32,
    }

    /// RESIZE_CQ (`ib_uverbs_resize_cq`).
    struct ResizeCq: 8 {
        cq_handle: u32,
        cqe: u32,
    }

    /// Response of RESIZE_CQ (`ib_uverbs_resize_cq_resp`).
    struct ResizeCqResponse: 8 {
        cqe: u32,
        reserved: u32,
    }

    /// CREATE_CQ (`ib_uverbs_create_cq`).
    struct CreateCq: 24 {
        user_handle: u64,
        cqe: u32,
        comp_vector: u32,
        comp_channel: i32,
        reserved: u32,
    }

    /// Extended CREATE_CQ (`ib_uverbs_ex_create_cq`).
    struct CreateCqEx: 32 {
        user_handle: u64,
        cqe: u32,
        comp_vector: u32,
        comp_channel: i32,
        comp_mask: u32,
        flags: u32,
        reserved: u32,
    }

    /// Response of CREATE_CQ (`ib_uverbs_create_cq_resp`).
    struct CreateCqResponse: 8 {
        cq_handle: u32,
        cqe: u32,
    }

    /// REQ_NOTIFY_CQ (`ib_uverbs_req_notify_cq`).
    struct ReqNotifyCq: 8 {
        cq_handle: u32,
        solicited_only: u32,
    }

    /// A handle and a reserved word: the fields of DESTROY_CQ, DESTROY_QP, DESTROY_SRQ and
    /// QUERY_SRQ.
    struct Handle: 8 {
        handle: u32,
        reserved: u32,
    }

    /// Response of DESTROY_CQ (`ib_uverbs_destroy_cq_resp`).
    struct DestroyCqResponse: 8 {
        comp_events_reported: u32,
        async_events_reported: u32,
    }

    /// CREATE_QP (`ib_uverbs_create_qp`).
    struct CreateQp: 48 {
        user_handle: u64,
        pd_handle: u32,
        send_cq_handle: u32,
        recv_cq_handle: u32,
        srq_handle: u32,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        sq_sig_all: u8,
        qp_type: u8,
        is_srq: u8,
        reserved: u8,
    }

    /// Fields of the extended CREATE_QP after those of `CreateQp` (`ib_uverbs_ex_create_qp`).
    struct CreateQpEx: 16 {
        comp_mask: u32,
        create_flags: u32,
        rwq_ind_tbl_handle: u32,
        source_qpn: u32,
    }

    /// Response of CREATE_QP (`ib_uverbs_create_qp_resp`).
    struct CreateQpResponse: 32 {
        qp_handle: u32,
        qpn: u32,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        reserved: u32,
    }

    /// Path of a queue pair (`ib_uverbs_qp_dest`).
    struct QpDestination: 32 {
        dgid: [u8; 16],
        flow_label: u32,
        dlid: u16,
        reserved: u16,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }

    /// MODIFY_QP (`ib_uverbs_modify_qp`).
    struct ModifyQp: 112 {
        dest: QpDestination,
        alt_dest: QpDestination,
        qp_handle: u32,
        attr_mask: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        en_sqd_async_notify: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        reserved: [u8; 2],
    }

    /// QUERY_QP (`ib_uverbs_query_qp`).
    struct QueryQp: 8 {
        qp_handle: u32,
        attr_mask: u32,
    }

    /// Response of QUERY_QP (`ib_uverbs_query_qp_resp`).
    struct QueryQpResponse: 128 {
        dest: QpDestination,
        alt_dest: QpDestination,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        sq_sig_all: u8,
        reserved: [u8; 5],
    }

    /// POST_SEND without work requests, which rings the doorbell of a send queue
    /// (`ib_uverbs_post_send`).
    struct PostSend: 16 {
        qp_handle: u32,
        wr_count: u32,
        sge_count: u32,
        wqe_size: u32,
    }

    /// CREATE_AH (`ib_uverbs_create_ah`, with `ib_uverbs_ah_attr`).
    struct CreateAh: 48 {
        user_handle: u64,
        pd_handle: u32,
        reserved: u32,
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        reserved_2: u8,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
        reserved_3: u8,
    }

    /// ATTACH_MCAST and DETACH_MCAST (`ib_uverbs_attach_mcast`).
    struct Multicast: 24 {
        gid: [u8; 16],
        qp_handle: u32,
        mlid: u16,
        reserved: u16,
    }

    /// CREATE_SRQ (`ib_uverbs_create_srq`).
    struct CreateSrq: 24 {
        user_handle: u64,
        pd_handle: u32,
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
    }

    /// CREATE_XSRQ (`ib_uverbs_create_xsrq`).
    struct CreateXsrq: 40 {
        user_handle: u64,
        srq_type: u32,
        pd_handle: u32,
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
        max_num_tags: u32,
        xrcd_handle: u32,
        cq_handle: u32,
    }

    /// Response of CREATE_SRQ (`ib_uverbs_create_srq_resp`).
    struct CreateSrqResponse: 16 {
        srq_handle: u32,
        max_wr: u32,
        max_sge: u32,
        srqn: u32,
    }

    /// MODIFY_SRQ (`ib_uverbs_modify_srq`).
    struct ModifySrq: 16 {
        srq_handle: u32,
        attr_mask: u32,
        max_wr: u32,
        srq_limit: u32,
    }

    /// Response of QUERY_SRQ (`ib_uverbs_query_srq_resp`).
    struct QuerySrqResponse: 16 {
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
        reserved: u32,
    }

    /// Offset and size of a ring in the device file (`mminfo` of rxe).
    struct MapInfo: 16 {
        offset: u64,
        size: u32,
        pad: u32,
    }

    /// A completion in a ring (`ib_uverbs_wc`).
    struct Completion: 48 {
        wr_id: u64,
        status: u32,
        opcode: u32,
        vendor_err: u32,
        byte_len: u32,
        immediate: [u8; 4],
        qp_num: u32,
        src_qp: u32,
        wc_flags: u32,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
        port_num: u8,
        reserved: u8,
    }

    /// Event of an asynchronous event file (`ib_uverbs_async_event_desc`).
    struct AsyncEventRecord: 16 {
        element: u64,
        event_type: u32,
        reserved: u32,
    }
}

//! The keys of OpenSM's configuration file.

use super::{Field, Settings};
use crate::sm::reasons;

/// A supported key.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Description of the key, for the file that `--create-config` writes.
    pub(crate) about: &'static str,
    pub(crate) field: fn(&mut Settings) -> Field<'_>,
}

/// Defines the table of keys. Each entry has the key, its description and its field.
macro_rules! keys {
    ($($name:literal $about:literal $settings:ident => $field:expr;)*) => {
        /// The supported keys, in the order in which `write` writes them.
        pub(crate) const KEYS: &[Key] = &[
            $(Key { name: $name, about: $about, field: |$settings| $field },)*
        ];
    };
}

use Field::{
    Byte, Code, Enforce, Engines, File, HighLimit, Levels, Long, Number, Option, Short, Switch,
    Turns,
};

/// Number of seconds in a day.
const DAY: u32 = 86_400;

/// Number of milliseconds in an hour.
const HOUR: u32 = 3_600_000;

keys! {
    "guid" "GUID of the SM's port; 0 for the first port with a link."
        s => Long(&mut s.guid);
    "m_key" "M_Key of all ports; 0 for none."
        s => Long(&mut s.config.m_key);
    "m_key_lease_period" "M_Key lease period in seconds; 0 for no expiration."
        s => Short(&mut s.config.m_key_lease_period);
    "m_key_protection_level" "M_Key protection level, 0 to 3."
        s => Byte(&mut s.config.m_key_protection_level, 0..=3);
    "sm_key" "SM_Key shared by all SMs of the subnet."
        s => Long(&mut s.config.sm_key);
    "sa_key" "SM_Key of trusted SA requests."
        s => Long(&mut s.config.sa_key);
    "subnet_prefix" "Subnet prefix: the upper 64 bits of GIDs."
        s => Long(&mut s.config.subnet_prefix);
    "lmc" "LMC: CA ports get 2^N LIDs."
        s => Byte(&mut s.lmc, 0..=7);
    "lmc_esp0" "Whether the LMC applies to enhanced switch ports 0."
        s => Switch(&mut s.config.routing.lids.lmc_esp0);
    "sm_sl" "SL of MADs to the SM: 0."
        s => Byte(&mut s.sm_sl, 0..=0);
    "packet_life_time" "Lifetime of a packet in a switch: 4.096 us * 2^N; above 0x13 unlimited."
        s => Code(&mut s.config.packet_life_time, 31);
    "vl_stall_count" "Number of dropped packets after which a VL to a switch stalls."
        s => Code(&mut s.config.vl_stall_count, 7);
    "leaf_vl_stall_count" "Number of dropped packets after which a VL to a CA stalls."
        s => Code(&mut s.config.leaf_vl_stall_count, 7);
    "head_of_queue_lifetime" "Head-of-queue lifetime of packets to switches: 4.096 us * 2^N."
        s => Code(&mut s.config.head_of_queue_lifetime, 31);
    "leaf_head_of_queue_lifetime" "Head-of-queue lifetime of packets to CAs: 4.096 us * 2^N."
        s => Code(&mut s.config.leaf_head_of_queue_lifetime, 31);
    "max_op_vls" "Maximum OperationalVLs: 1 for VL0, 2 for VL0-1, 3 for VL0-3, 4 for VL0-7, 5 for VL0-14."
        s => Byte(&mut s.config.max_op_vls.0, 1..=5);
    "subnet_timeout" "SubnetTimeOut of ports: 4.096 us * 2^N."
        s => Byte(&mut s.config.subnet_timeout, 0..=31);
    "local_phy_errors_threshold" "Threshold of local physical errors that causes a trap."
        s => Code(&mut s.config.local_phy_errors_threshold, 15);
    "overrun_errors_threshold" "Threshold of buffer overruns that causes a trap."
        s => Code(&mut s.config.overrun_errors_threshold, 15);
    "partition_config_file" "Partition file."
        s => File(&mut s.partition_config_file);
    "part_enforce" "Partition enforcement by switches: both, in, out or off."
        s => Enforce(&mut s.config.part_enforce);
    "sweep_interval" "Seconds between light sweeps; 0 for none."
        s => Number(&mut s.sweep_interval, 0..=DAY);
    "reassign_lids" "Whether the first sweep reassigns all LIDs."
        s => Switch(&mut s.config.routing.lids.reassign);
    "port_profile_switch_nodes" "Whether routes to switches are counted for link balancing."
        s => Switch(&mut s.engines.port_profile_switch_nodes);
    "port_prof_ignore_file" "Ports that are ignored by link balancing."
        s => File(&mut s.engines.ignore_guids);
    "hop_weights_file" "Hop weights of links."
        s => File(&mut s.engines.hop_weights);
    "port_search_ordering_file" "Order in which ports are tried."
        s => File(&mut s.engines.port_search_ordering);
    "routing_engine" "Routing engines in order of preference, separated by commas: minhop updn ftree lash dor file."
        s => Engines(&mut s.config.routing.engines);
    "connect_roots" "Whether root switches are connected with each other."
        s => Switch(&mut s.engines.connect_roots);
    "use_ucast_cache" "Whether routes are cached when hosts and leaf switches leave and return."
        s => Switch(&mut s.config.use_ucast_cache);
    "lid_matrix_dump_file" "LID matrix file of the file engine."
        s => File(&mut s.engines.lid_matrix);
    "lfts_file" "LFT file of the file engine."
        s => File(&mut s.engines.lfts);
    "root_guid_file" "GUIDs of root switches."
        s => File(&mut s.engines.root_guids);
    "cn_guid_file" "Port GUIDs of compute nodes."
        s => File(&mut s.engines.cn_guids);
    "io_guid_file" "Port GUIDs of I/O nodes."
        s => File(&mut s.engines.io_guids);
    "quasi_ftree_indexing" "Whether ftree starts its indexing at a root switch."
        s => Switch(&mut s.engines.quasi_ftree_indexing);
    "max_reverse_hops" "Maximum number of reverse hops on paths to I/O nodes."
        s => Option(&mut s.engines.max_reverse_hops, 255);
    "ids_guid_file" "IDs of switches for updn, in place of GUIDs."
        s => File(&mut s.engines.ids_guids);
    "guid_routing_order_file" "Ports that are routed first."
        s => File(&mut s.engines.guid_routing_order);
    "lash_start_vl" "Lowest VL of lash."
        s => Option(&mut s.engines.lash_start_vl, 14);
    "port_shifting" "Whether the search for the least used port starts at the port after the last one."
        s => Switch(&mut s.engines.port_shifting);
    "scatter_ports" "Seed of the random choice among least used ports; 0 for no random choice."
        s => Option(&mut s.engines.scatter_ports, u32::MAX.into());
    "guid_routing_order_no_scatter" "Whether the ports that are routed first are excluded from the random choice."
        s => Switch(&mut s.engines.guid_routing_order_no_scatter);
    "sm_priority" "SM priority, 0 to 15."
        s => Byte(&mut s.config.sm_priority, 0..=15);
    "sminfo_polling_timeout" "Milliseconds between two SMInfo queries to the master."
        s => Number(&mut s.sminfo_polling_timeout, 1..=HOUR);
    "polling_retry_number" "Number of unanswered SMInfo queries after which the master has failed."
        s => Number(&mut s.config.sminfo_polling_retries, 1..=1000);
    "honor_guid2lid_file" "Whether guid2lid is used after a takeover from another master."
        s => Switch(&mut s.honor_guid2lid);
    "max_wire_smps" "Maximum number of outstanding SMPs; 0 for no limit."
        s => Number(&mut s.max_wire_smps, 0..=65_536);
    "transaction_timeout" "Timeout of a MAD in milliseconds."
        s => Number(&mut s.transaction_timeout, 1..=HOUR);
    "transaction_retries" "Maximum number of retransmissions of an SMP."
        s => Number(&mut s.transaction_retries, 0..=1000);
    "daemon" "Whether the SM runs in the background."
        s => Switch(&mut s.daemon);
    "sm_inactive" "Whether the SM starts in the state NOT-ACTIVE."
        s => Switch(&mut s.inactive);
    "node_name_map_name" "File that maps node GUIDs to names."
        s => File(&mut s.node_name_map);
    "log_flags" "Log levels: 0x01 errors, 0x02 events, 0x04 verbose, 0x08 debug, 0x20 MADs; \
                 0x40 writes all dump files."
        s => Code(&mut s.log_flags, 0xff);
    "log_file" "Log file; stdout for standard output."
        s => File(&mut s.log_file);
    "log_max_size" "Size in MB at which the log file is truncated; 0 for no limit."
        s => Number(&mut s.log_max_size, 0..=1_048_576);
    "accum_log_file" "Whether the log file is appended to."
        s => Switch(&mut s.accum_log_file);
    "dump_files_dir" "Directory of dump files."
        s => File(&mut s.dump_files_dir);
    "no_clients_rereg" "Whether client reregistration requests are disabled."
        s => Switch(&mut s.config.no_clients_rereg);
    "qos" "Whether SL2VL mapping and VL arbitration are configured."
        s => Switch(&mut s.qos);
    "qos_max_vls" "Maximum number of data VLs; 0 for 15."
        s => Byte(&mut s.lanes[0].max_vls, 0..=15);
    "qos_high_limit" "Limit of high-priority VL arbitration in units of 4 KiB; 255 for no limit."
        s => HighLimit(&mut s.lanes[0].high_limit);
    "qos_vlarb_high" "High-priority VL arbitration entries: VL:weight, separated by commas."
        s => Turns(&mut s.lanes[0].vlarb_high);
    "qos_vlarb_low" "Low-priority VL arbitration entries."
        s => Turns(&mut s.lanes[0].vlarb_low);
    "qos_sl2vl" "VL of each of the 16 SLs."
        s => Levels(&mut s.lanes[0].sl2vl);
    "qos_ca_max_vls" "Maximum number of data VLs of CAs."
        s => Byte(&mut s.lanes[1].max_vls, 0..=15);
    "qos_ca_high_limit" "" s => HighLimit(&mut s.lanes[1].high_limit);
    "qos_ca_vlarb_high" "" s => Turns(&mut s.lanes[1].vlarb_high);
    "qos_ca_vlarb_low" "" s => Turns(&mut s.lanes[1].vlarb_low);
    "qos_ca_sl2vl" "" s => Levels(&mut s.lanes[1].sl2vl);
    "qos_sw0_max_vls" "Maximum number of data VLs of enhanced switch ports 0."
        s => Byte(&mut s.lanes[2].max_vls, 0..=15);
    "qos_sw0_high_limit" "" s => HighLimit(&mut s.lanes[2].high_limit);
    "qos_sw0_vlarb_high" "" s => Turns(&mut s.lanes[2].vlarb_high);
    "qos_sw0_vlarb_low" "" s => Turns(&mut s.lanes[2].vlarb_low);
    "qos_sw0_sl2vl" "" s => Levels(&mut s.lanes[2].sl2vl);
    "qos_swe_max_vls" "Maximum number of data VLs of external switch ports."
        s => Byte(&mut s.lanes[3].max_vls, 0..=15);
    "qos_swe_high_limit" "" s => HighLimit(&mut s.lanes[3].high_limit);
    "qos_swe_vlarb_high" "" s => Turns(&mut s.lanes[3].vlarb_high);
    "qos_swe_vlarb_low" "" s => Turns(&mut s.lanes[3].vlarb_low);
    "qos_swe_sl2vl" "" s => Levels(&mut s.lanes[3].sl2vl);
    "qos_rtr_max_vls" "Maximum number of data VLs of routers."
        s => Byte(&mut s.lanes[4].max_vls, 0..=15);
    "qos_rtr_high_limit" "" s => HighLimit(&mut s.lanes[4].high_limit);
    "qos_rtr_vlarb_high" "" s => Turns(&mut s.lanes[4].vlarb_high);
    "qos_rtr_vlarb_low" "" s => Turns(&mut s.lanes[4].vlarb_low);
    "qos_rtr_sl2vl" "" s => Levels(&mut s.lanes[4].sl2vl);
}

/// Keys of OpenSM that are not supported, with OpenSM's defaults. Any other value causes a note that the key is
/// ignored, or an error if [`REFUSED`] lists the key. Keys with an empty default cause no note.
pub(crate) const IGNORED: &[(&str, &str)] = &[
    ("m_key_lookup", "TRUE"),
    ("force_link_speed", "15"),
    ("force_link_speed_ext", "31"),
    ("force_link_width", "255"),
    ("fdr10", "1"),
    ("use_mfttop", "TRUE"),
    // The reader of the configuration file handles this key itself: TRUE sets `part_enforce` to `off`.
    ("no_partition_enforcement", ""),
    // TRUE and FALSE have the same effect: a port can always be a full member and a limited member of a partition.
    ("allow_both_pkeys", ""),
    // The SM always behaves as with TRUE: a P_Key keeps its index while it is in a port's table.
    ("keep_pkey_indexes", "TRUE"),
    ("sm_assigned_guid", "0x00"),
    ("force_heavy_sweep", "FALSE"),
    ("sweep_on_trap", "TRUE"),
    ("avoid_throttled_links", "FALSE"),
    ("do_mesh_analysis", "FALSE"),
    ("nue_max_num_vls", "1"),
    ("nue_include_switches", "FALSE"),
    ("sa_db_file", "(null)"),
    ("sa_db_dump", "FALSE"),
    ("torus_config", "/etc/opensm/torus-2QoS.conf"),
    ("ignore_other_sm", "FALSE"),
    ("max_wire_smps2", "4"),
    ("max_smps_timeout", "600000"),
    ("long_transaction_timeout", "500"),
    ("max_msg_fifo_timeout", "10000"),
    // TRUE and FALSE have the same effect: one thread answers all SA queries.
    ("single_thread", ""),
    ("babbling_port_policy", "FALSE"),
    ("drop_event_subscriptions", "FALSE"),
    ("ipoib_mcgroup_creation_validation", "TRUE"),
    ("mcgroup_join_validation", "TRUE"),
    ("use_original_extended_sa_rates_only", "FALSE"),
    ("use_optimized_slvl", "FALSE"),
    // The SM always behaves as with TRUE: it syncs files to disk.
    ("fsync_high_avail_files", "TRUE"),
    ("perfmgr", "FALSE"),
    ("perfmgr_redir", "TRUE"),
    ("perfmgr_sweep_time_s", "180"),
    ("perfmgr_max_outstanding_queries", "500"),
    ("perfmgr_ignore_cas", "FALSE"),
    ("perfmgr_rm_nodes", "TRUE"),
    ("perfmgr_log_errors", "TRUE"),
    ("perfmgr_query_cpi", "TRUE"),
    ("perfmgr_xmit_wait_log", "FALSE"),
    ("perfmgr_xmit_wait_threshold", "65535"),
    ("event_db_dump_file", "(null)"),
    ("event_plugin_name", "(null)"),
    ("event_plugin_options", "(null)"),
    // TRUE and FALSE have the same effect: the log is always flushed.
    ("force_log_flush", ""),
    ("per_module_logging_file", "/etc/opensm/per-module-logging.conf"),
    ("enable_quirks", "FALSE"),
    ("disable_multicast", "FALSE"),
    ("exit_on_fatal", "TRUE"),
    ("console", "off"),
    ("console_port", "10000"),
    ("qos_policy_file", "/etc/opensm/qos-policy.conf"),
    ("suppress_sl2vl_mad_status_errors", "FALSE"),
    ("congestion_control", "FALSE"),
    ("cc_key", "0x0000000000000000"),
    ("cc_max_outstanding_mads", "500"),
    ("cc_sw_cong_setting_control_map", "0x0"),
    ("cc_sw_cong_setting_victim_mask", ZEROS),
    ("cc_sw_cong_setting_credit_mask", ZEROS),
    ("cc_sw_cong_setting_threshold", "0x00"),
    ("cc_sw_cong_setting_packet_size", "0"),
    ("cc_sw_cong_setting_credit_starvation_threshold", "0x00"),
    ("cc_sw_cong_setting_credit_starvation_return_delay", "0:0"),
    ("cc_sw_cong_setting_marking_rate", "0"),
    ("cc_ca_cong_setting_port_control", "0x0000"),
    ("cc_ca_cong_setting_control_map", "0x0000"),
    ("cc_ca_cong_setting_ccti_timer", "0 0"),
    ("cc_ca_cong_setting_ccti_increase", "0 0"),
    ("cc_ca_cong_setting_trigger_threshold", "0 0"),
    ("cc_ca_cong_setting_ccti_min", "0 0"),
    ("cc_cct", "(null)"),
    ("prefix_routes_file", "/etc/opensm/prefix-routes.conf"),
    ("consolidate_ipv6_snm_req", "FALSE"),
    ("log_prefix", "(null)"),
];

/// Keys of [`IGNORED`] for which any value but the default is an error, each with the reason for the error.
pub(crate) const REFUSED: &[(&str, &str)] = &[
    ("do_mesh_analysis", reasons::MESHES),
    ("nue_max_num_vls", reasons::ENGINE),
    ("sa_db_file", reasons::SA_FILE),
    ("torus_config", reasons::ENGINE),
    ("ignore_other_sm", reasons::OTHER_MANAGERS),
    ("perfmgr", reasons::PERFMGR),
    ("event_plugin_name", reasons::NO_PLUGINS),
    ("disable_multicast", reasons::MULTICAST),
    ("console", reasons::NO_CONSOLE),
    ("qos_policy_file", reasons::QOS_POLICY),
    ("congestion_control", reasons::CONGESTION),
    ("cc_key", reasons::CONGESTION),
    ("prefix_routes_file", reasons::PREFIX_ROUTES),
    ("consolidate_ipv6_snm_req", reasons::ONE_LID_EACH),
    ("log_prefix", reasons::NO_SYSLOG),
];

/// OpenSM's notation of a mask of 256 ports in which no port is set.
const ZEROS: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

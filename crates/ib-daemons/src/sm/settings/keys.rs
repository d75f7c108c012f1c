//! The keys of OpenSM's configuration file.

use super::{Field, Settings};
use crate::sm::reasons;

/// A key that means something here.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// What it says, for the file that `--create-config` writes.
    pub(crate) about: &'static str,
    pub(crate) field: fn(&mut Settings) -> Field<'_>,
}

/// Writes the table: key, what it says, field.
macro_rules! keys {
    ($($name:literal $about:literal $settings:ident => $field:expr;)*) => {
        /// The keys that mean something here, in the order of the file that is written.
        pub(crate) const KEYS: &[Key] = &[
            $(Key { name: $name, about: $about, field: |$settings| $field },)*
        ];
    };
}

use Field::{
    Byte, Code, Enforce, Engines, File, HighLimit, Levels, Long, Number, Option, Short, Switch,
    Turns,
};

/// A day in seconds.
const DAY: u32 = 86_400;

/// An hour in milliseconds.
const HOUR: u32 = 3_600_000;

keys! {
    "guid" "The GUID of the port to manage from; 0 for the first that has a link."
        s => Long(&mut s.guid);
    "m_key" "The key that guards the attributes of all ports; 0 for none."
        s => Long(&mut s.config.m_key);
    "m_key_lease_period" "Seconds until the key's protection ends unless it is renewed; 0 for never."
        s => Short(&mut s.config.m_key_lease_period);
    "m_key_protection_level" "How much the key protects, 0 to 3."
        s => Byte(&mut s.config.m_key_protection_level, 0..=3);
    "sm_key" "The key that the managers of the subnet share."
        s => Long(&mut s.config.sm_key);
    "sa_key" "The key by which requests to subnet administration are trusted."
        s => Long(&mut s.config.sa_key);
    "subnet_prefix" "The upper half of the GIDs."
        s => Long(&mut s.config.subnet_prefix);
    "lmc" "2^N LIDs for every port of an adapter."
        s => Byte(&mut s.lmc, 0..=7);
    "lmc_esp0" "Whether enhanced switch ports 0 have as many LIDs."
        s => Switch(&mut s.config.routing.lids.lmc_esp0);
    "sm_sl" "The service level to the manager: 0."
        s => Byte(&mut s.sm_sl, 0..=0);
    "packet_life_time" "How long a packet may stay in a switch: 4.096 us * 2^N; above 0x13 for ever."
        s => Code(&mut s.config.packet_life_time, 31);
    "vl_stall_count" "After how many dropped packets a lane to a switch stalls."
        s => Code(&mut s.config.vl_stall_count, 7);
    "leaf_vl_stall_count" "After how many dropped packets a lane to an adapter stalls."
        s => Code(&mut s.config.leaf_vl_stall_count, 7);
    "head_of_queue_lifetime" "How long a packet to a switch may head its queue: 4.096 us * 2^N."
        s => Code(&mut s.config.head_of_queue_lifetime, 31);
    "leaf_head_of_queue_lifetime" "How long a packet to an adapter may head its queue: 4.096 us * 2^N."
        s => Code(&mut s.config.leaf_head_of_queue_lifetime, 31);
    "max_op_vls" "The most data lanes: 1 for 1, 2 for 2, 3 for 4, 4 for 8, 5 for 15."
        s => Byte(&mut s.config.max_op_vls.0, 1..=5);
    "subnet_timeout" "The longest trip through the subnet: 4.096 us * 2^N."
        s => Byte(&mut s.config.subnet_timeout, 0..=31);
    "local_phy_errors_threshold" "How many physical errors of a link make a trap."
        s => Code(&mut s.config.local_phy_errors_threshold, 15);
    "overrun_errors_threshold" "How many overruns of a buffer make a trap."
        s => Code(&mut s.config.overrun_errors_threshold, 15);
    "partition_config_file" "Who may talk to whom."
        s => File(&mut s.partition_config_file);
    "part_enforce" "Where switches check partitions: both, in, out or off."
        s => Enforce(&mut s.config.part_enforce);
    "sweep_interval" "Seconds between light sweeps; 0 for none."
        s => Number(&mut s.sweep_interval, 0..=DAY);
    "reassign_lids" "Whether the first sweep assigns all LIDs anew."
        s => Switch(&mut s.config.routing.lids.reassign);
    "port_profile_switch_nodes" "Whether routes to switches count in the balance of links."
        s => Switch(&mut s.engines.port_profile_switch_nodes);
    "port_prof_ignore_file" "Ports that do not count in the balance of links."
        s => File(&mut s.engines.ignore_guids);
    "hop_weights_file" "Weights of links in hops."
        s => File(&mut s.engines.hop_weights);
    "port_search_ordering_file" "Ports to be tried first."
        s => File(&mut s.engines.port_search_ordering);
    "routing_engine" "The engines to try, with commas between: minhop updn ftree lash dor file."
        s => Engines(&mut s.config.routing.engines);
    "connect_roots" "Whether root switches reach each other."
        s => Switch(&mut s.engines.connect_roots);
    "use_ucast_cache" "Whether routes are kept when hosts and leaf switches go and come back."
        s => Switch(&mut s.config.use_ucast_cache);
    "lid_matrix_dump_file" "The lid matrix that the file engine loads."
        s => File(&mut s.engines.lid_matrix);
    "lfts_file" "The forwarding tables that the file engine loads."
        s => File(&mut s.engines.lfts);
    "root_guid_file" "The root switches."
        s => File(&mut s.engines.root_guids);
    "cn_guid_file" "The ports of compute nodes."
        s => File(&mut s.engines.cn_guids);
    "io_guid_file" "The ports of I/O nodes."
        s => File(&mut s.engines.io_guids);
    "quasi_ftree_indexing" "Whether ftree numbers from a root switch on."
        s => Switch(&mut s.engines.quasi_ftree_indexing);
    "max_reverse_hops" "How many hops a path to an I/O node may lead back up."
        s => Option(&mut s.engines.max_reverse_hops, 255);
    "ids_guid_file" "Identifiers in place of GUIDs, for updn."
        s => File(&mut s.engines.ids_guids);
    "guid_routing_order_file" "Ports to be routed first."
        s => File(&mut s.engines.guid_routing_order);
    "lash_start_vl" "The lowest lane of lash."
        s => Option(&mut s.engines.lash_start_vl, 14);
    "port_shifting" "Whether the search for the least used port moves on from LID to LID."
        s => Switch(&mut s.engines.port_shifting);
    "scatter_ports" "The seed to draw among least used ports by; 0 draws nothing."
        s => Option(&mut s.engines.scatter_ports, u32::MAX.into());
    "guid_routing_order_no_scatter" "Whether nothing is drawn for the ports to be routed first."
        s => Switch(&mut s.engines.guid_routing_order_no_scatter);
    "sm_priority" "The priority among managers, 0 to 15."
        s => Byte(&mut s.config.sm_priority, 0..=15);
    "sminfo_polling_timeout" "Milliseconds between two questions to the master."
        s => Number(&mut s.sminfo_polling_timeout, 1..=HOUR);
    "polling_retry_number" "After how many questions without an answer the master has failed."
        s => Number(&mut s.config.sminfo_polling_retries, 1..=1000);
    "honor_guid2lid_file" "Whether guid2lid counts when another master has failed."
        s => Switch(&mut s.honor_guid2lid);
    "max_wire_smps" "How many SMPs may be on their way; 0 for any number."
        s => Number(&mut s.max_wire_smps, 0..=65_536);
    "transaction_timeout" "Milliseconds that an answer is waited for."
        s => Number(&mut s.transaction_timeout, 1..=HOUR);
    "transaction_retries" "How often an SMP without answer is repeated."
        s => Number(&mut s.transaction_retries, 0..=1000);
    "daemon" "Whether the manager runs in the background."
        s => Switch(&mut s.daemon);
    "sm_inactive" "Whether the manager waits to be told to work."
        s => Switch(&mut s.inactive);
    "node_name_map_name" "Names for node GUIDs."
        s => File(&mut s.node_name_map);
    "log_flags" "What is logged: 0x01 errors, 0x02 what happens, 0x04 more, 0x08 steps, 0x20 datagrams; \
                 0x40 writes the dumps."
        s => Code(&mut s.log_flags, 0xff);
    "log_file" "The log; stdout for standard output."
        s => File(&mut s.log_file);
    "log_max_size" "The size in MB at which the log begins anew; 0 for none."
        s => Number(&mut s.log_max_size, 0..=1_048_576);
    "accum_log_file" "Whether the log of an earlier run is kept."
        s => Switch(&mut s.accum_log_file);
    "dump_files_dir" "The directory of dump files."
        s => File(&mut s.dump_files_dir);
    "no_clients_rereg" "Whether clients are not asked to register again."
        s => Switch(&mut s.config.no_clients_rereg);
    "qos" "Whether lanes are set up."
        s => Switch(&mut s.qos);
    "qos_max_vls" "The most data lanes; 0 for 15."
        s => Byte(&mut s.lanes[0].max_vls, 0..=15);
    "qos_high_limit" "What the high-priority table sends in a row, in 4 KiB; 255 for no limit."
        s => HighLimit(&mut s.lanes[0].high_limit);
    "qos_vlarb_high" "The turns of high priority: lane:weight, with commas between."
        s => Turns(&mut s.lanes[0].vlarb_high);
    "qos_vlarb_low" "The turns of low priority."
        s => Turns(&mut s.lanes[0].vlarb_low);
    "qos_sl2vl" "The lane of each of the 16 service levels."
        s => Levels(&mut s.lanes[0].sl2vl);
    "qos_ca_max_vls" "The same for adapters."
        s => Byte(&mut s.lanes[1].max_vls, 0..=15);
    "qos_ca_high_limit" "" s => HighLimit(&mut s.lanes[1].high_limit);
    "qos_ca_vlarb_high" "" s => Turns(&mut s.lanes[1].vlarb_high);
    "qos_ca_vlarb_low" "" s => Turns(&mut s.lanes[1].vlarb_low);
    "qos_ca_sl2vl" "" s => Levels(&mut s.lanes[1].sl2vl);
    "qos_sw0_max_vls" "The same for enhanced ports 0 of switches."
        s => Byte(&mut s.lanes[2].max_vls, 0..=15);
    "qos_sw0_high_limit" "" s => HighLimit(&mut s.lanes[2].high_limit);
    "qos_sw0_vlarb_high" "" s => Turns(&mut s.lanes[2].vlarb_high);
    "qos_sw0_vlarb_low" "" s => Turns(&mut s.lanes[2].vlarb_low);
    "qos_sw0_sl2vl" "" s => Levels(&mut s.lanes[2].sl2vl);
    "qos_swe_max_vls" "The same for other ports of switches."
        s => Byte(&mut s.lanes[3].max_vls, 0..=15);
    "qos_swe_high_limit" "" s => HighLimit(&mut s.lanes[3].high_limit);
    "qos_swe_vlarb_high" "" s => Turns(&mut s.lanes[3].vlarb_high);
    "qos_swe_vlarb_low" "" s => Turns(&mut s.lanes[3].vlarb_low);
    "qos_swe_sl2vl" "" s => Levels(&mut s.lanes[3].sl2vl);
    "qos_rtr_max_vls" "The same for routers."
        s => Byte(&mut s.lanes[4].max_vls, 0..=15);
    "qos_rtr_high_limit" "" s => HighLimit(&mut s.lanes[4].high_limit);
    "qos_rtr_vlarb_high" "" s => Turns(&mut s.lanes[4].vlarb_high);
    "qos_rtr_vlarb_low" "" s => Turns(&mut s.lanes[4].vlarb_low);
    "qos_rtr_sl2vl" "" s => Levels(&mut s.lanes[4].sl2vl);
}

/// Keys of OpenSM that mean nothing here, with the values that OpenSM writes: who has another value is
/// told that it is ignored. Whatever is said to the keys without a value here is so anyway.
pub(crate) const IGNORED: &[(&str, &str)] = &[
    ("m_key_lookup", "TRUE"),
    ("force_link_speed", "15"),
    ("force_link_speed_ext", "31"),
    ("force_link_width", "255"),
    ("fdr10", "1"),
    ("use_mfttop", "TRUE"),
    // TRUE is read as `part_enforce off`.
    ("no_partition_enforcement", ""),
    // Both memberships are always possible.
    ("allow_both_pkeys", ""),
    // Keys keep their index as long as they are in a table.
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
    // Queries are always answered by the one thread.
    ("single_thread", ""),
    ("babbling_port_policy", "FALSE"),
    ("drop_event_subscriptions", "FALSE"),
    ("ipoib_mcgroup_creation_validation", "TRUE"),
    ("mcgroup_join_validation", "TRUE"),
    ("use_original_extended_sa_rates_only", "FALSE"),
    ("use_optimized_slvl", "FALSE"),
    // They always are.
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
    // It always is.
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

/// Keys of those that end the program when they ask for something, as the options of the command line
/// do, and why.
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

/// A mask of 256 ports.
const ZEROS: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

use ib_wire::mad::sm::{LinkSpeedExtMask, LinkSpeedMask, LinkWidthMask, PhysState, PortState};

use super::*;

#[test]
fn port_files_have_the_formats_of_the_kernel() {
    let mut info = PortInfo::parse(&[0; 64]);
    (info.lid, info.master_sm_lid, info.lmc) = (0x1f, 3, 2);
    (info.port_state, info.phys_state) = (PortState(4), PhysState(5));
    info.link_width_active = LinkWidthMask(2);
    info.link_speed_ext_active = LinkSpeedExtMask(2);
    let gid = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 1];
    let files: BTreeMap<_, _> = text::port_files(&info, gid).into_iter().collect();
    assert_eq!(files["lid"], "0x1f");
    assert_eq!(files["lid_mask_count"], "2");
    assert_eq!(files["state"], "4: ACTIVE");
    assert_eq!(files["phys_state"], "5: LinkUp");
    assert_eq!(files["rate"], "100 Gb/sec (4X EDR)");
    assert_eq!(files["gids/0"], "fe80:0000:0000:0000:0000:0000:0010:0001");
    info.link_speed_ext_active = LinkSpeedExtMask(0);
    (info.link_width_active, info.link_speed_active) = (LinkWidthMask(1), LinkSpeedMask(1));
    let rate = |info: &PortInfo| text::port_files(info, gid)[6].1.clone();
    assert_eq!(rate(&info), "2.5 Gb/sec (1X)");
    assert_eq!(text::guid(0x0002_c903_0010_0001), "0002:c903:0010:0001");
}

#[test]
fn directories_of_exited_processes_are_removed() {
    let base = tempfile::tempdir().expect("a directory can be created");
    let dead = base.path().join(format!("{PREFIX}4194304-0"));
    let other = base.path().join("something-else");
    for path in [&dead, &other] {
        fs::create_dir(path).expect("a directory can be created");
    }
    let own = make_directory(base.path()).expect("a directory can be created");
    assert_eq!(fs::metadata(&own).expect("the directory exists").mode() & 0o777, 0o700);
    remove_left_over(base.path());
    assert!(!dead.exists() && other.exists() && own.exists());
    assert_ne!(make_directory(base.path()).expect("a directory can be created"), own);
}

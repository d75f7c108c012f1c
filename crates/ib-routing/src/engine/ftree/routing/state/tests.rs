use super::*;

fn group(up_load: u32, place: u32) -> Group {
    Group { far: 0, links: 1, far_port: 1, first_link: 0, place, up_load, down_load: 0 }
}

#[test]
fn groups_are_ordered_by_load_then_index() {
    let groups = [group(2, 0), group(0, 9), group(1, 4), group(0, 3), group(1, 4), group(0, 9)];
    let mut order = [0, 5, 4, 3, 2, 1];
    order_by(&mut order, &groups, |group| group.up_load);
    assert_eq!(order, [3, 5, 1, 4, 2, 0]);
}

#[test]
fn turns_wrap_around() {
    let mut local = Local {
        first: 0,
        down: 3,
        siblings: 0,
        up: 0,
        turn: 0,
        family: 0,
        has_adapter: false,
        has_compute_node: false,
        is_root: true,
        is_plain: true,
        is_above_ends: false,
        down_changed: false,
        up_changed: false,
    };
    let turns: Vec<u8> = (0..4)
        .map(|_| {
            local.advance_turn();
            local.turn
        })
        .collect();
    assert_eq!(turns, [1, 2, 0, 1]);
}

use super::with_section;

const PAGE: &str = "# Benchmarks\nrouting\n\n## Simulator\nold\n\n## Other\nkept\n";

#[test]
fn a_section_is_replaced_and_the_others_stay() {
    let page = with_section(PAGE, Some("## Simulator"), "## Simulator\nnew\n");
    assert_eq!(page, "# Benchmarks\nrouting\n\n## Simulator\nnew\n\n## Other\nkept\n");
    let page = with_section(PAGE, None, "# Benchmarks\nfaster\n");
    assert_eq!(page, "# Benchmarks\nfaster\n\n## Simulator\nold\n\n## Other\nkept\n");
}

#[test]
fn a_section_that_is_not_there_comes_last() {
    let page = with_section("# Benchmarks\nrouting\n", Some("## Simulator"), "## Simulator\nnew\n");
    assert_eq!(page, "# Benchmarks\nrouting\n\n## Simulator\nnew\n");
}

use super::*;

#[test]
fn every_counter_has_the_name_that_perfquery_has_for_it() {
    let named = Counters { xmit_data: 7, ..Counters::default() };
    let shown = counters(&named);
    assert_eq!(shown.len(), named.named().len(), "no two have one name");
    assert_eq!(shown["PortXmitData"], 7);
    for name in shown.keys() {
        assert!(name.starts_with(char::is_uppercase), "{name}");
    }
}

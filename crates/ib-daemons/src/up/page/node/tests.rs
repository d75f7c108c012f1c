use super::*;

#[test]
fn all_counters_have_the_names_of_perfquery() {
    let named = Counters { xmit_data: 7, ..Counters::default() };
    let shown = counters(&named);
    assert_eq!(shown.len(), named.named().len(), "names are unique");
    assert_eq!(shown["PortXmitData"], 7);
    for name in shown.keys() {
        assert!(name.starts_with(char::is_uppercase), "{name}");
    }
}

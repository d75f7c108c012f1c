use super::*;

#[test]
fn lists_are_read_as_opensm_writes_them() {
    let list: EngineList = "updn, minhop no_fallback".parse().expect("three words");
    assert_eq!(list.engines(), [EngineKind::UpDown, EngineKind::MinHop]);
    assert_eq!(list.to_string(), "updn,minhop,no_fallback");
    assert_eq!("ftree".parse(), Ok(EngineList::from(EngineKind::FatTree)));
}

#[test]
fn an_empty_or_unknown_name_is_refused() {
    for text in ["", " , ", "no_fallback", "updn,sssp", "MINHOP"] {
        assert!(text.parse::<EngineList>().is_err(), "{text:?} was accepted");
    }
}

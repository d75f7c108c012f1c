use super::*;

#[test]
fn engine_lists_are_parsed_like_in_opensm() {
    let list: EngineList = "updn, minhop no_fallback".parse().expect("the list is valid");
    assert_eq!(list.engines(), [EngineKind::UpDown, EngineKind::MinHop]);
    assert_eq!(list.to_string(), "updn,minhop,no_fallback");
    assert_eq!("ftree".parse(), Ok(EngineList::from(EngineKind::FatTree)));
}

#[test]
fn empty_or_unknown_name_is_refused() {
    for text in ["", " , ", "no_fallback", "updn,sssp", "MINHOP"] {
        assert!(text.parse::<EngineList>().is_err(), "{text:?} was accepted");
    }
}

#[test]
fn only_the_default_list_adds_engines_without_credit_loops() {
    use EngineKind::{Dor, Lash, MinHop, UpDown};
    let candidates =
        |text: &str| text.parse::<EngineList>().expect("the list is valid").candidates();
    assert_eq!(EngineList::default().candidates(), [MinHop, UpDown, Lash]);
    assert_eq!(candidates("auto"), [MinHop, UpDown, Lash]);
    assert_eq!(candidates("minhop"), [MinHop]);
    assert_eq!(candidates("dor,updn,dor"), [Dor, UpDown, MinHop]);
    assert_eq!(candidates("dor,no_fallback"), [Dor]);
    assert_eq!(EngineList::default().to_string(), "auto");
    assert_eq!("auto".parse(), Ok(EngineList::default()));
}

use ib_wire::mad::sm::SmInfo;
use ib_wire::mad::{AttributeId, MadStatus, Method, TransactionId, smp};

use super::*;

#[test]
fn a_response_on_a_directed_route_points_where_the_request_did() {
    let what = (AttributeId::SM_INFO, 0);
    let request = smp::directed_request(Method::GET, TransactionId(1), what, &[1, 2]);
    assert_eq!(for_ibsim(request), request);
    let mut response = request;
    response.set_attribute(&SmInfo::zeroed());
    smp::answer(&mut response, MadStatus::OK);
    assert_eq!(response.hop_pointer(), 3, "as adapters have it");
    assert_eq!(for_ibsim(response).hop_pointer(), 0);
    let mut routed = Mad::new(MgmtClass::SUBN_LID_ROUTED, Method::GET_RESP, TransactionId(1));
    routed.0[6] = 7;
    assert_eq!(for_ibsim(routed), routed);
}

use super::*;
use crate::layout::bytes_of;

/// Returns the bytes of a command.
fn command(number: u32, fields: &[u8], room: u16) -> Vec<u8> {
    let input = fields.len().try_into().unwrap();
    let header = Header { command: number, input, output: room };
    [bytes_of(&header), fields.to_vec()].concat()
}

fn decode(number: u32, fields: &impl Field, room: u16) -> Result<Command, Errno> {
    Command::decode(&command(number, &bytes_of(fields), room))
}

#[test]
fn command_has_fields_and_response_buffer() {
    let create =
        CreateId { uid: 7, response: 0x1000, port_space: 0x106, qp_type: 2, reserved: [0; 5] };
    let decoded = decode(0, &create, 4).unwrap();
    let request = Request::CreateId(create);
    assert_eq!(decoded, Command { request, response: 0x1000, room: 4 });
    let query = Query { response: 0x2000, id: 3, option: 2 };
    let decoded = decode(19, &query, 280).unwrap();
    assert_eq!(decoded, Command { request: Request::QueryGid(3), response: 0x2000, room: 280 });
    let decoded = decode(12, &0x3000_u64, SHORT_EVENT as u16).unwrap();
    let room = SHORT_EVENT;
    assert_eq!(decoded, Command { request: Request::GetEvent, response: 0x3000, room });
}

#[test]
fn response_that_does_not_fit_is_refused() {
    let create = CreateId { port_space: 0x106, ..CreateId::default() };
    assert_eq!(decode(0, &create, 3), Err(Errno::NO_SPACE));
    assert_eq!(decode(12, &0_u64, SHORT_EVENT as u16 - 1), Err(Errno::NO_SPACE));
    assert_eq!(decode(5, &Query::default(), 199), Err(Errno::NO_SPACE));
    assert_eq!(decode(19, &Query::default(), 271), Err(Errno::NO_SPACE));
    assert_eq!(decode(11, &InitQpAttr::default(), 143), Err(Errno::NO_SPACE));
}

#[test]
fn commands_that_the_kernel_lacks_have_its_errors() {
    assert_eq!(decode(13, &SetOption::default(), 256), Err(Errno::NO_SYSTEM_CALL));
    assert_eq!(
        decode(19, &Query { option: 3, ..Query::default() }, 280),
        Err(Errno::NO_SYSTEM_CALL)
    );
    assert_eq!(decode(23, &Query::default(), 280), Err(Errno::INVALID));
    assert_eq!(decode(u32::MAX, &Query::default(), 280), Err(Errno::INVALID));
}

#[test]
fn sizes_that_contradict_each_other_are_refused() {
    let mut bytes = command(7, &bytes_of(&Listen { id: 1, backlog: 5 }), 0);
    assert!(Command::decode(&bytes).is_ok());
    bytes.pop();
    assert_eq!(Command::decode(&bytes), Err(Errno::INVALID));
    assert_eq!(Command::decode(&command(7, &[0; 7], 0)), Err(Errno::INVALID));
    assert_eq!(Command::decode(&[0; 7]), Err(Errno::INVALID));
}

#[test]
fn connection_with_ece_is_refused() {
    let connect = bytes_of(&Connect { id: 1, ..Connect::default() });
    assert!(Command::decode(&command(6, &connect, 0)).is_ok());
    let with = |vendor_id| {
        let ece = bytes_of(&Ece { vendor_id, options: 1 });
        Command::decode(&command(6, &[&connect[..], &ece].concat(), 0))
    };
    assert!(with(0).is_ok());
    assert_eq!(with(0x15b3), Err(Errno::NOT_SUPPORTED));
}

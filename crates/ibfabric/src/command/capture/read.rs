//! `ibfabric capture read`: prints the packets of a capture file.

use std::fs::File;
use std::io::{BufReader, Read, Write as _};
use std::path::Path;

use ib_capture::dissect::{Fields, Value};
use ib_capture::{CaptureFile, Dissection, Dissector, Frame, FrameError, Item};
use ib_link::Direction;
use ib_wire::mad::MgmtClass;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use summary::Summary;

use crate::cli::capture::{DirectionArg, ReadArgs};
use crate::failure::{Failure, Verdict};
use crate::output::{Format, Output};

mod summary;
mod text;

pub(super) fn run(args: &ReadArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let name = if args.file == Path::new("-") {
        "standard input".to_owned()
    } else {
        args.file.display().to_string()
    };
    let stream = open(&args.file)?;
    let cannot = |error| Failure::Unusable(format!("{name}: {error}"));
    let mut file = CaptureFile::new(stream, &args.udp_port).map_err(cannot)?;
    let mut dissector = Dissector::new();
    let mut summary = Summary::new(args.udp_port.clone());
    let mut first = None;
    let mut left = args.count.unwrap_or(u64::MAX);
    let ended = loop {
        match file.next_item() {
            Err(error) => break Err(cannot(error)),
            Ok(None) => break Ok(Verdict::Good),
            Ok(Some(Item::Frame(frame))) => {
                let content = frame.content.as_ref();
                let found = content.map(|content| dissector.dissect(content)).map_err(|&why| why);
                first = first.or(frame.time);
                let is_shown = wanted(args, &frame, &found);
                if is_shown {
                    show(args, &frame, &found, first, out)?;
                    left -= 1;
                }
                let (interface, lost) = (frame.interface, frame.lost);
                summary.frame(&found);
                let section = file.sections();
                summary.lost((section, interface), lost);
            }
            Ok(Some(Item::Statistics(statistics))) => {
                let name = file.interface(statistics.interface);
                let name = name.and_then(|interface| interface.name.clone());
                summary.statistics(file.sections(), &statistics, name);
            }
        }
        if left == 0 {
            break Ok(Verdict::Good);
        }
    };
    // The summary and errors go to standard error, so the packets on standard output are flushed first.
    out.flush()?;
    if !args.json {
        summary.say(&name);
    }
    ended
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let file = File::open(path)
        .map_err(|error| Failure::Unusable(format!("cannot read {}: {error}", path.display())))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

/// A decoded packet, or the reason why a frame is not an RDMA packet.
type Found<'a> = Result<Dissection<'a>, FrameError>;

/// Returns whether a frame passes all filters.
fn wanted(args: &ReadArgs, frame: &Frame<'_>, found: &Found<'_>) -> bool {
    let direction = args.direction.map(|direction| match direction {
        DirectionArg::Send => Direction::Send,
        DirectionArg::Receive => Direction::Receive,
    });
    if direction.is_some() && frame.direction != direction {
        return false;
    }
    let Ok(packet) = found else {
        return args.qpn.is_empty() && args.opcode.is_empty() && args.class.is_none();
    };
    let bth = packet.packet.bth();
    let of_qp = args.qpn.is_empty()
        || args.qpn.iter().any(|&qpn| bth.destination == qpn || packet.source_qpn == Some(qpn));
    let of_opcode =
        args.opcode.is_empty() || args.opcode.iter().any(|opcodes| opcodes.0.contains(&bth.opcode));
    let of_class = args
        .class
        .as_ref()
        .is_none_or(|classes| class(packet).is_some_and(|class| classes.0.contains(&class)));
    of_qp && of_opcode && of_class
}

/// Returns the management class of a packet.
fn class(packet: &Dissection<'_>) -> Option<MgmtClass> {
    if let Some(mad) = &packet.mad {
        return Some(mad.mad().class());
    }
    packet.upper.as_ref().filter(|upper| upper.protocol == "acm").map(|_| MgmtClass::ACM)
}

/// Prints a frame. Its line of text has the time since `first`, the timestamp of the first frame that has one.
fn show(
    args: &ReadArgs,
    frame: &Frame<'_>,
    found: &Found<'_>,
    first: Option<u64>,
    out: &mut Output,
) -> Result<(), Failure> {
    match (Format::of(args.json), args.verbose > 0) {
        (Format::Json, _) => out.json(&Json(&fields(frame, found))),
        (Format::Text, false) => Ok(writeln!(out, "{}", text::line(frame, found, first))?),
        (Format::Text, true) => {
            writeln!(out, "{}", text::line(frame, found, first))?;
            Ok(text::fields(&fields(frame, found), 1, out)?)
        }
    }
}

/// Returns all fields of a frame.
fn fields(frame: &Frame<'_>, found: &Found<'_>) -> Fields {
    use ib_capture::dissect::Value;
    let mut fields = Fields::new();
    fields.put("number", Value::Number(frame.number));
    fields.put("time", frame.time.map(text::seconds));
    fields.put("interface", frame.interface_name);
    fields.put("direction", frame.direction.map(Direction::name));
    fields.put("length", Value::Number(frame.length as u64));
    fields.put("captured", Value::Number(frame.captured as u64));
    match found {
        Ok(packet) => fields.extend(&packet.to_fields()),
        Err(why) => fields.text("foreign", why),
    }
    let comments: Vec<Value> =
        frame.comments.iter().map(|comment| Value::Text(comment.clone())).collect();
    fields.put("comments", comments);
    fields.put("lost", Value::Number(frame.lost));
    fields
}

/// The fields of a packet, by name. Their number and their names depend on the packet.
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct PacketFields(std::collections::BTreeMap<String, FieldValue>);

/// The value of a field. Numbers of more than 32 bits are hexadecimal strings.
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
enum FieldValue {
    Missing(()),
    Flag(bool),
    Number(u64),
    Text(String),
    Group(PacketFields),
    List(Vec<FieldValue>),
}

/// Returns the JSON Schema of a line of the output with `--json`.
pub(crate) fn schema() -> schemars::Schema {
    crate::schemas::of::<PacketFields>()
}

/// The fields of a frame as a JSON object. `Value::Wide` becomes a hexadecimal string, since some JSON parsers round
/// numbers above 2^53.
pub(super) struct Json<'a>(pub(super) &'a Fields);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.iter() {
            map.serialize_entry(name, &JsonValue(value))?;
        }
        map.end()
    }
}

struct JsonValue<'a>(&'a Value);

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Missing => serializer.serialize_none(),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => serializer.serialize_u64(*number),
            Value::Wide(number) => serializer.collect_str(&format_args!("0x{number:x}")),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Group(fields) => Json(fields).serialize(serializer),
            Value::List(values) => serializer.collect_seq(values.iter().map(JsonValue)),
        }
    }
}

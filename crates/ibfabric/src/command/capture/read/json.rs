//! JSON output of the fields of a frame, in the order in which `Fields` holds them.

use ib_capture::dissect::{Fields, Value};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// The fields of a frame as a JSON object. `Value::Wide` becomes a hexadecimal string, since some JSON parsers round
/// numbers above 2^53.
pub(super) struct Json<'a>(pub(super) &'a Fields);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.iter() {
            map.serialize_entry(name, &Item(value))?;
        }
        map.end()
    }
}

struct Item<'a>(&'a Value);

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Missing => serializer.serialize_none(),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => serializer.serialize_u64(*number),
            Value::Wide(number) => serializer.collect_str(&format_args!("0x{number:x}")),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Group(fields) => Json(fields).serialize(serializer),
            Value::List(values) => serializer.collect_seq(values.iter().map(Item)),
        }
    }
}

//! Selection of records by a request.

use ib_wire::mad::sa::{ComponentMask, Record, matches};

/// Component mask bit of the LID, which is common to all records of ports and switches.
pub(super) const LID: u8 = 0;

/// The selection of records by a request: a component mask, and a template that the records have to match.
#[derive(Clone, Copy)]
pub(super) struct Query<'a> {
    pub(super) mask: ComponentMask,
    pub(super) template: &'a [u8],
}

impl Query<'_> {
    /// Returns the LID at the start of the template, if the component mask selects records by LID.
    pub(super) fn lid(&self) -> Option<u16> {
        let bytes = self.template.first_chunk::<2>().expect("a template is as long as its record");
        self.mask.has(LID).then(|| u16::from_be_bytes(*bytes))
    }

    pub(super) const fn without(self, bit: u8) -> Self {
        Self { mask: ComponentMask(self.mask.0 & !(1 << bit)), ..self }
    }

    /// Returns true if the request selects the record.
    pub(super) fn selects<R: Record>(&self, record: &R) -> bool {
        matches(self.mask, R::COMPONENTS, self.template, &record.to_record())
    }

    /// Appends the record if the request selects it.
    pub(super) fn add<R: Record>(&self, record: &R, to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + R::STRIDE, 0);
        record.write(&mut to[start..]);
        if !matches(self.mask, R::COMPONENTS, self.template, &to[start..]) {
            to.truncate(start);
        }
    }
}

//! The address that warehouses, districts and customers have (clause 4.3.2.7 for the postal code).

use super::text::{Text, TextBuffer, TextSource};

/// Street, city, state and postal code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRow<'a> {
    /// 10 to 20 characters.
    pub street_1: Text<'a>,
    /// 10 to 20 characters.
    pub street_2: Text<'a>,
    /// 10 to 20 characters.
    pub city: Text<'a>,
    /// Two capital letters.
    pub state: Text<'a>,
    /// Four random digits and `11111`.
    pub zip: Text<'a>,
}

/// The buffers behind an [`AddressRow`].
#[derive(Clone, Debug)]
pub(super) struct AddressBuffer {
    street_1: TextBuffer<20>,
    street_2: TextBuffer<20>,
    city: TextBuffer<20>,
    state: TextBuffer<2>,
    zip: TextBuffer<9>,
}

impl AddressBuffer {
    pub(super) const fn new() -> AddressBuffer {
        AddressBuffer {
            street_1: TextBuffer::new(),
            street_2: TextBuffer::new(),
            city: TextBuffer::new(),
            state: TextBuffer::new(),
            zip: TextBuffer::new(),
        }
    }

    pub(super) fn generate(&mut self, source: &mut TextSource) {
        source.string(&mut self.street_1, 10, 20);
        source.string(&mut self.street_2, 10, 20);
        source.string(&mut self.city, 10, 20);
        source.letters(self.state.resize(2));
        let zip = self.zip.resize(9);
        source.digits(&mut zip[..4]);
        zip[4..].copy_from_slice(b"11111");
    }

    pub(super) fn row(&self) -> AddressRow<'_> {
        AddressRow {
            street_1: self.street_1.text(),
            street_2: self.street_2.text(),
            city: self.city.text(),
            state: self.state.text(),
            zip: self.zip.text(),
        }
    }
}

//! A device of a disk group: the name of a profile, or a table.

use schemars::json_schema;

use crate::entry::{Entry, Section};
use crate::file::Profile;
use crate::section::*;

section! {
    /// A device of a disk group.
    pub(crate) struct GroupDevice as "GroupDevice" {
        /// A built-in device profile; `underlay list devices` shows them.
        "profile" profile: Entry<String> = One(text());
        /// Values that differ from that profile.
        "overrides" overrides: Section<Profile> = table::<Profile>();
    }
    limits { "required": ["profile"] }
}

/// A device of a disk group: the name of a profile, or a table with what differs from it.
pub(crate) fn group_device() -> impl Kind<Value = Section<GroupDevice>> {
    kind(
        |item, report| {
            if item.is_table() {
                return Some(item.section(report, GroupDevice::read));
            }
            let profile = Entry::Given { value: item.text(report)?, span: item.span.clone() };
            let content = GroupDevice { profile, ..GroupDevice::default() };
            Some(Section { content, span: Some(item.span.clone()), refused: false })
        },
        |generator| {
            let table = generator.subschema_for::<GroupDevice>();
            json_schema!({ "anyOf": [{ "type": "string" }, table] })
        },
    )
}

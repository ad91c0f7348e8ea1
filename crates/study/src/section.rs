//! A table of the study format, declared once: its keys with their kinds of values.
//!
//! [`section!`] generates the struct, the reader and the JSON schema from one declaration. The doc
//! comment of a key is its description in the schema. What a missing key means is decided by
//! `defaults.toml` and the resolver.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use underlay_core::{Bytes, Dilation, Nanos, Words};

use crate::entry::{Entry, Section};
use crate::plan::TimeDilation;
use crate::quantity_schema::{Size, Time};
use crate::reader::{Item, Keys};
use crate::report::Report;

/// A table that can be read.
pub(crate) trait Table: Default + JsonSchema {
    /// Takes every key of the table.
    fn read(keys: &mut Keys<'_, '_>) -> Self;
}

/// A kind of value: how it is read, and how the schema describes it.
pub(crate) trait Kind {
    /// What is read.
    type Value;

    /// The value; `None` when it was refused and reported.
    fn read(&self, item: &Item<'_>, report: &mut Report) -> Option<Self::Value>;

    /// What the schema accepts.
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
}

/// What a key holds: a value, a table or a list of tables.
pub(crate) trait Holding {
    /// The field of the struct.
    type Field;

    /// Takes the key from its table.
    fn take(&self, keys: &mut Keys<'_, '_>, key: &'static str) -> Self::Field;

    /// What the schema accepts.
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
}

/// A value.
pub(crate) struct One<K>(pub K);

/// A table, `[key]`.
pub(crate) struct OneTable<T>(pub PhantomData<T>);

/// Tables, `[[key]]`.
pub(crate) struct Tables<T>(pub PhantomData<T>);

impl<K: Kind> Holding for One<K> {
    type Field = Entry<K::Value>;

    fn take(&self, keys: &mut Keys<'_, '_>, key: &'static str) -> Self::Field {
        keys.take(key, |item, report| self.0.read(item, report))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        self.0.schema(generator)
    }
}

impl<T: Table> Holding for OneTable<T> {
    type Field = Section<T>;

    fn take(&self, keys: &mut Keys<'_, '_>, key: &'static str) -> Self::Field {
        keys.section(key, T::read)
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

impl<T: Table> Holding for Tables<T> {
    type Field = Entry<Vec<Section<T>>>;

    fn take(&self, keys: &mut Keys<'_, '_>, key: &'static str) -> Self::Field {
        keys.sections(key, T::read)
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": generator.subschema_for::<T>() })
    }
}

/// A kind made of a function that reads and a description.
pub(crate) struct Read<R, S> {
    read: R,
    schema: S,
}

impl<V, R, S> Kind for Read<R, S>
where
    R: Fn(&Item<'_>, &mut Report) -> Option<V>,
    S: Fn(&mut SchemaGenerator) -> Schema,
{
    type Value = V;

    fn read(&self, item: &Item<'_>, report: &mut Report) -> Option<V> {
        (self.read)(item, report)
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

/// A kind of its own.
pub(crate) fn kind<V, R, S>(read: R, schema: S) -> impl Kind<Value = V>
where
    R: Fn(&Item<'_>, &mut Report) -> Option<V>,
    S: Fn(&mut SchemaGenerator) -> Schema,
{
    Read { read, schema }
}

/// A text.
pub(crate) fn text() -> impl Kind<Value = String> {
    kind(|item, report| item.text(report), |_| json_schema!({ "type": "string" }))
}

/// A text whose form the resolver checks.
pub(crate) fn text_like(pattern: &'static str) -> impl Kind<Value = String> {
    kind(
        |item, report| item.text(report),
        move |_| json_schema!({ "type": "string", "pattern": pattern }),
    )
}

/// True or false.
pub(crate) fn boolean() -> impl Kind<Value = bool> {
    kind(|item, report| item.boolean(report), |_| json_schema!({ "type": "boolean" }))
}

/// One of a closed set of words.
pub(crate) fn word<W: Words>() -> impl Kind<Value = W> {
    kind(
        |item, report| item.word(report),
        |_| {
            let words: Vec<&str> = W::all().iter().map(|value| value.word()).collect();
            json_schema!({ "type": "string", "enum": words })
        },
    )
}

/// A length of time with its unit.
pub(crate) fn time() -> impl Kind<Value = Nanos> {
    kind(|item, report| item.time(report), |generator| generator.subschema_for::<Time>())
}

/// A size with its unit.
pub(crate) fn size() -> impl Kind<Value = Bytes> {
    kind(|item, report| item.size(report), |generator| generator.subschema_for::<Size>())
}

/// A rate in bytes per second, written as a size.
pub(crate) fn rate() -> impl Kind<Value = u64> {
    kind(|item, report| item.rate(report), |generator| generator.subschema_for::<Size>())
}

/// A whole number of a range.
pub(crate) fn whole(range: RangeInclusive<u64>) -> impl Kind<Value = u64> {
    let shown = range.clone();
    whole_shown_as(range, shown)
}

/// A whole number of a range of which editors propose a part.
pub(crate) fn whole_shown_as(
    range: RangeInclusive<u64>,
    shown: RangeInclusive<u64>,
) -> impl Kind<Value = u64> {
    kind(
        move |item, report| item.integer(report, range.clone()),
        move |_| between("integer", shown.start(), shown.end()),
    )
}

/// A whole number of 32 bits. The resolver checks its range, as the command line can give it too.
pub(crate) fn count(shown: RangeInclusive<u32>) -> impl Kind<Value = u32> {
    kind(|item, report| item.count(report), move |_| between("integer", shown.start(), shown.end()))
}

/// A number of a range.
pub(crate) fn number(range: RangeInclusive<f64>) -> impl Kind<Value = f64> {
    let shown = range.clone();
    kind(
        move |item, report| item.number(report, range.clone()),
        move |_| between("number", shown.start(), shown.end()),
    )
}

fn between<N: serde::Serialize>(kind: &str, low: &N, high: &N) -> Schema {
    json_schema!({ "type": kind, "minimum": low, "maximum": high })
}

/// A factor of time dilation.
pub(crate) fn time_dilation() -> impl Kind<Value = TimeDilation> {
    kind(
        |item, report| item.time_dilation(report),
        |_| {
            let factor = between("integer", &1, &Dilation::MAX);
            json_schema!({ "anyOf": [factor, { "const": "auto" }] })
        },
    )
}

/// A list of values; `of` names what it holds.
pub(crate) fn list<K: Kind>(of: &'static str, element: K) -> impl Kind<Value = Vec<K::Value>> {
    List { of, element, length: None }
}

/// A list whose length the resolver checks, because the command line can give it too.
pub(crate) fn list_of<K: Kind>(
    length: RangeInclusive<usize>,
    of: &'static str,
    element: K,
) -> impl Kind<Value = Vec<K::Value>> {
    List { of, element, length: Some(length) }
}

struct List<K> {
    of: &'static str,
    element: K,
    length: Option<RangeInclusive<usize>>,
}

impl<K: Kind> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn read(&self, item: &Item<'_>, report: &mut Report) -> Option<Self::Value> {
        item.list(report, self.of, |item, report| self.element.read(item, report))
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({ "type": "array", "items": self.element.schema(generator) });
        if let Some(length) = &self.length {
            schema.insert("minItems".to_string(), (*length.start()).into());
            schema.insert("maxItems".to_string(), (*length.end()).into());
        }
        schema
    }
}

/// A table.
pub(crate) fn table<T: Table>() -> OneTable<T> {
    OneTable(PhantomData)
}

/// Tables.
pub(crate) fn tables<T: Table>() -> Tables<T> {
    Tables(PhantomData)
}

/// The schema of a table: `keys` are name, description and what is accepted.
pub(crate) fn table_schema(
    description: &[&str],
    keys: Vec<(&'static str, &[&str], Schema)>,
    limits: Value,
) -> Schema {
    let mut properties = Map::new();
    for (key, description, schema) in keys {
        let mut schema = Value::from(schema);
        schema["description"] = joined(description).into();
        properties.insert(key.to_string(), schema);
    }
    let mut table = json!({
        "type": "object",
        "description": joined(description),
        "properties": properties,
        "additionalProperties": false,
    });
    if let (Some(table), Value::Object(limits)) = (table.as_object_mut(), limits) {
        table.extend(limits);
    }
    Schema::try_from(table).expect("an object is a schema")
}

fn joined(lines: &[&str]) -> Cow<'static, str> {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").into()
}

/// Declares a table of the format. Each key is its name, its field, the field's type and its kind of value.
///
/// `written_for` maps wrong names that people write to the right ones; `limits` are further keywords of the
/// schema, such as `required`.
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        $vis:vis struct $name:ident as $schema_name:literal {
            $(
                $(#[doc = $key_doc:literal])+
                $key:literal $field:ident: $type:ty = $holding:expr;
            )*
        }
        $(written_for { $($wrong:literal => $right:literal),+ $(,)? })?
        $(limits { $($limits:tt)+ })?
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default)]
        $vis struct $name {
            $($(#[doc = $key_doc])+ pub $field: $type,)*
        }

        impl $crate::section::Table for $name {
            #[allow(unused_variables, reason = "a table without keys takes none")]
            fn read(keys: &mut $crate::reader::Keys<'_, '_>) -> $name {
                $($(keys.alias($wrong, $right);)+)?
                $name {
                    $($field: $crate::section::Holding::take(&$holding, keys, $key),)*
                }
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $schema_name.into()
            }

            #[allow(unused_variables, reason = "a table without keys describes none")]
            fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let keys = vec![$((
                    $key,
                    &[$($key_doc),+][..],
                    $crate::section::Holding::schema(&$holding, generator),
                ),)*];
                let limits = section!(@limits $($($limits)+)?);
                $crate::section::table_schema(&[$($doc),+], keys, limits)
            }
        }
    };
    (@limits) => { ::serde_json::Value::Null };
    (@limits $($limits:tt)+) => { ::serde_json::json!({ $($limits)+ }) };
}

pub(crate) use section;

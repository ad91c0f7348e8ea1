//! Stands for one of a closed set of words in a schema.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use underlay_core::Words;

/// Stands for one of the words of `T` in a schema.
pub(crate) struct Word<T>(PhantomData<T>);

impl<T: Words> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::all().iter().map(|value| value.word()).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

//! Structs that are written to JSON field by field: numbers with the unit in their key, words as text.
//!
//! [`json_struct!`] declares the struct and the key of each field together. It knows no plan and no file.

use std::path::PathBuf;

use serde_json::Value;
use underlay_core::Nanos;

/// A value that can be written.
pub(crate) trait ToJson {
    /// As JSON.
    fn to_json(&self) -> Value;
}

/// A value that can be read back.
pub(crate) trait FromJson: Sized {
    /// What [`ToJson::to_json`] wrote; `None` when it is something else.
    fn from_json(value: &Value) -> Option<Self>;
}

macro_rules! plain {
    ($($kind:ty: $value:ident => $read:expr;)*) => {$(
        impl ToJson for $kind {
            fn to_json(&self) -> Value {
                ::serde_json::json!(self)
            }
        }

        impl FromJson for $kind {
            fn from_json($value: &Value) -> Option<$kind> {
                $read
            }
        }
    )*};
}

plain! {
    u32: value => value.as_u64()?.try_into().ok();
    u64: value => value.as_u64();
    bool: value => value.as_bool();
    String: value => value.as_str().map(str::to_string);
    PathBuf: value => value.as_str().map(PathBuf::from);
}

/// In nanoseconds.
impl ToJson for Nanos {
    fn to_json(&self) -> Value {
        self.0.into()
    }
}

impl FromJson for Nanos {
    fn from_json(value: &Value) -> Option<Nanos> {
        value.as_u64().map(Nanos)
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn to_json(&self) -> Value {
        self.iter().map(T::to_json).collect()
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(value: &Value) -> Option<Vec<T>> {
        value.as_array()?.iter().map(T::from_json).collect()
    }
}

/// Null when absent.
impl<T: ToJson> ToJson for Option<T> {
    fn to_json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_json)
    }
}

impl<T: FromJson> FromJson for Option<T> {
    fn from_json(value: &Value) -> Option<Option<T>> {
        if value.is_null() { Some(None) } else { T::from_json(value).map(Some) }
    }
}

/// Declares a struct whose fields are written to JSON under the given keys; with `reads_back` at the
/// end it gets `from_json`, too.
macro_rules! json_struct {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[doc = $doc:literal])+ $key:literal $field:ident: $type:ty,)*
        }
        $($reads_back:ident)?
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $crate::json_value::ToJson for $name {
            fn to_json(&self) -> ::serde_json::Value {
                ::serde_json::json!({
                    $($key: $crate::json_value::ToJson::to_json(&self.$field),)*
                })
            }
        }

        $crate::json_value::json_struct!(@from [$($reads_back)?] $name $($key $field)*);
    };
    (@from [] $($rest:tt)*) => {};
    (@from [reads_back] $name:ident $($key:literal $field:ident)*) => {
        impl $name {
            /// What was written as JSON; keys that are absent count as null.
            ///
            /// # Errors
            /// The first key whose value is something else.
            pub(crate) fn from_json(
                object: &::serde_json::Map<String, ::serde_json::Value>,
            ) -> Result<$name, &'static str> {
                let null = ::serde_json::Value::Null;
                Ok($name {
                    $($field: $crate::json_value::FromJson::from_json(
                        object.get($key).unwrap_or(&null),
                    )
                    .ok_or($key)?,)*
                })
            }
        }
    };
}

pub(crate) use json_struct;

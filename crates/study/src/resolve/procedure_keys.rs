//! Decides about the plain keys of `[procedure]`, and refuses them for loads that they have no meaning for.
//!
//! What depends on more than the key itself is not here: see `procedure`, `job_procedure` and `block_procedure`.

use std::ops::{Range, RangeInclusive};

use underlay_core::Nanos;

use super::chosen::{Chosen, Layer};
use super::resolver::Resolver;
use super::time_range::check_time;
use crate::entry::Entry;
use crate::exact;
use crate::limits::UNMEASURED;
use crate::plan::{Order, ProcedurePlan, Setting, TimeDilation};
use crate::procedure_keys;

/// Which kind of load a procedure measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Virtual users of a database.
    Users,
    /// Block requests, without a database.
    Block,
    /// A job, which runs until it is done.
    Job,
}

/// How a value is written in the provenance.
trait Written {
    fn written(&self) -> String;
}

impl Written for Nanos {
    fn written(&self) -> String {
        exact::time(*self)
    }
}

impl Written for bool {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl Written for Order {
    fn written(&self) -> String {
        self.as_str().to_string()
    }
}

impl Written for TimeDilation {
    fn written(&self) -> String {
        self.to_string()
    }
}

/// The option decides, else the study, else the defaults.
fn plain_key<T: Clone>(
    resolver: &Resolver<'_>,
    path: &str,
    [file, default]: [&Entry<T>; 2],
    option: Option<(&'static str, T)>,
) -> Option<Chosen<T>> {
    match option {
        Some((option, value)) => Some(Chosen::command_line(value, path, option)),
        None => resolver.pick(path, &[(Layer::File, file), (Layer::Default, default)]).found(),
    }
}

macro_rules! decide {
    (
        [$($(#[doc = $doc:literal])+ $key:literal $field:ident: $type:ty = $kind:expr,
            plan $json:literal, of [$($load:ident),+], unused $unused:expr
            $(, option $option:literal $value:literal $help:literal)?;)*]
    ) => {
        /// What was decided about each plain key; none where it was refused, or has no meaning for the load.
        #[derive(Clone, Debug)]
        pub(super) struct PlainKeys {
            load: Load,
            $(pub $field: Option<Chosen<$type>>,)*
        }

        impl PlainKeys {
            /// The lines of the provenance, in the order of the declaration.
            pub fn settings(&self) -> Vec<Setting> {
                let settings = [$(
                    self.$field.as_ref().map(|chosen| chosen.setting(chosen.value.written())),
                )*];
                settings.into_iter().flatten().collect()
            }

            /// Sets the plain keys of a plan. None if one that has a meaning for the load was refused.
            pub fn plan(&self) -> Option<ProcedurePlan> {
                Some(ProcedurePlan {
                    $($field: match &self.$field {
                        Some(chosen) => chosen.value,
                        None if [$(Load::$load),+].contains(&self.load) => return None,
                        None => $unused,
                    },)*
                    ..ProcedurePlan::empty()
                })
            }
        }

        /// The names of plain keys that have no meaning for a load.
        pub(super) fn names_without_meaning(load: Load) -> impl Iterator<Item = &'static str> {
            let names = [$(($key, [$(Load::$load),+].contains(&load))),*];
            names.into_iter().filter(|(_, has_meaning)| !has_meaning).map(|(name, _)| name)
        }

        /// Decides about the plain keys that have a meaning for a load.
        pub(super) fn plain_keys(resolver: &Resolver<'_>, load: Load) -> PlainKeys {
            PlainKeys {
                load,
                $($field: [$(Load::$load),+].contains(&load).then(|| {
                    let option: Option<(&'static str, $type)> =
                        None$(.or(resolver.options.$field.map(|value| ($option, value))))?;
                    plain_key(resolver,
                        concat!("procedure.", $key),
                        [&resolver.file.procedure.$field, &resolver.defaults.procedure.$field],
                        option,
                    )
                }).flatten(),)*
            }
        }

        /// The plain keys that the study has and that have no meaning for a load.
        pub(super) fn meaningless_keys(resolver: &Resolver<'_>, load: Load) -> Vec<(&'static str, Range<usize>)> {
            let keys = [$((
                concat!("procedure.", $key),
                resolver.file.procedure.$field.span(),
                [$(Load::$load),+].contains(&load),
            ),)*];
            keys.into_iter()
                .filter(|(_, _, has_meaning)| !has_meaning)
                .filter_map(|(key, span, _)| Some((key, span?)))
                .collect()
        }

        #[cfg(test)]
        mod tests {
            use serde_json::Value;

            use crate::builtin::DEFAULTS;
            use crate::json_value::ToJson;
            use crate::plan::ProcedurePlan;

            /// Name and key of the plan's JSON of each plain key.
            const KEYS: &[(&str, &str)] = &[$(($key, $json)),*];

            #[test]
            fn every_plain_key_has_a_default() {
                let defaults: toml::Table = DEFAULTS.parse().expect("the defaults are TOML");
                let procedure = defaults["procedure"].as_table().expect("a table");
                for (key, _) in KEYS {
                    assert!(procedure.contains_key(*key), "defaults.toml has no value of `{key}`");
                }
            }

            #[test]
            fn options_are_named_after_their_keys() {
                let options: &[(&str, &[&str])] = &[$(($key, &[$($option)?])),*];
                for (key, option) in options {
                    assert!(option.iter().all(|option| **option == format!("--{key}")), "{key}");
                }
            }

            #[test]
            fn every_plain_key_is_in_schema_and_plan() {
                let schema = crate::json_schema();
                let described = &schema["$defs"]["Procedure"]["properties"];
                let plan = ProcedurePlan::empty().to_json();
                for (key, json) in KEYS {
                    assert!(described[key]["description"].is_string(), "no schema of `{key}`");
                    assert_ne!(plan[json], Value::Null, "the plan does not write `{json}`");
                }
            }
        }
    };
}

/// Reports phases outside their ranges.
pub(super) fn check_times(
    resolver: &mut Resolver<'_>,
    keys: &PlainKeys,
    window: &RangeInclusive<Nanos>,
) {
    for unmeasured in [&keys.settle, &keys.warm_up, &keys.ramp_up].into_iter().flatten() {
        check_time(resolver, unmeasured, &UNMEASURED);
    }
    if let Some(measure) = &keys.measure {
        check_time(resolver, measure, window);
    }
}

procedure_keys! { decide! }

//! What the command line may change in a study.

use std::path::PathBuf;

use serde_json::Value;
use underlay_core::Nanos;

use crate::json_value::{FromJson, ToJson, json_struct};
use crate::plan::{Repeats, Scale, TimeDilation};
use crate::procedure_keys;

/// The options of the plain keys and those that are declared here.
macro_rules! options_with {
    (
        [$($(#[doc = $doc:literal])+ $key:literal $field:ident: $type:ty = $kind:expr,
            plan $json:literal, of [$($load:ident),+], unused $unused:expr
            $(, option $option:literal $value:literal $help:literal)?;)*]
        $(#[$meta:meta])*
        pub struct $name:ident { $($others:tt)* }
    ) => {
        json_struct! {
            $(#[$meta])*
            pub struct $name {
                $($(#[doc = $option] $json $field: Option<$type>,)?)*
                $($others)*
            }
            reads_back
        }
    };
}

procedure_keys! { options_with!
    /// Options that take precedence over the study file. All empty = the study as written.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct PlanOptions {
        /// `--laptop`.
        "size" size: Option<StudySize>,
        /// `--scale 1/k`.
        "scale" scale: Option<Scale>,
        /// `--repeats N`, or `--repeats "until 5 %"`.
        "repeats" repeats: Option<Repeats>,
        /// `--users 1,4,16`: replaces the ladder, not scaled.
        "users" users: Option<Vec<u32>>,
        /// `--seed N`.
        "seed" seed: Option<u64>,
        /// `--designs a,b`: only these designs of the study.
        "designs" designs: Option<Vec<String>>,
        /// `--server-bin DIR`.
        "server_bin" server_bin: Option<PathBuf>,
        /// `--out FILE`.
        "out" out: Option<PathBuf>,
    }
}

/// A size that a study has besides the one it is written at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudySize {
    /// With the values of its `[laptop]` table in their places.
    Laptop,
}

impl ToJson for StudySize {
    fn to_json(&self) -> Value {
        match self {
            StudySize::Laptop => "laptop".into(),
        }
    }
}

impl FromJson for StudySize {
    fn from_json(value: &Value) -> Option<StudySize> {
        (value.as_str()? == "laptop").then_some(StudySize::Laptop)
    }
}

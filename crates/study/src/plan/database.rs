//! The databases of a plan: the systems under test, all of them loaded and measured together.

use super::{ClientPlan, DesignPlan, EnginePlan, Sizes, VolumePlan, WorkloadPlan};

/// A database under test.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabasePlan {
    /// Unique in the study; empty where the study names no databases and has only this one.
    pub name: String,
    /// The server as all designs use it, before the overrides of a design.
    pub engine: EnginePlan,
    /// What the users of this database do.
    pub workload: WorkloadPlan,
    /// Its sizes before scaling.
    pub full_size: Sizes,
    /// Its sizes.
    pub size: Sizes,
    /// What it is in each design of the study that it belongs to, in their order: placed on each host of a cluster, there are as many
    /// databases as the design has room for.
    pub parts: Vec<DatabasePart>,
}

/// A database in one design.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabasePart {
    /// Name of the design; of a study with axes without its point.
    pub design: String,
    /// The server, with the design's overrides applied.
    pub engine: EnginePlan,
    /// Where its load generator runs, with the design's overrides applied.
    pub client: ClientPlan,
    /// Its volumes, under the names that the datastore has for them.
    pub volumes: Vec<VolumePlan>,
    /// The host of the cluster that it is placed on, if it is.
    pub host: Option<String>,
}

impl DatabasePlan {
    /// What the datastore calls this database's volume of that name: `data`, or `oltp-1-data`.
    pub fn volume(&self, name: &str) -> String {
        volume_name(&self.name, name)
    }

    /// Whether it has a job in the place of users.
    pub fn is_job(&self) -> bool {
        self.workload.kind.job_sessions().is_some()
    }

    /// What records call something of this database that they have for each: `postgres`, or `oltp-1/postgres`.
    pub fn recorded(&self, name: &str) -> String {
        match self.name.as_str() {
            "" => name.to_string(),
            own => format!("{own}/{name}"),
        }
    }

    /// What it is in a design of its study, or in a variant of one.
    pub fn part(&self, design: &DesignPlan) -> Option<&DatabasePart> {
        let name = design.variant.as_ref().map_or(&design.name, |variant| &variant.design);
        self.parts.iter().find(|part| part.design == *name)
    }
}

/// What the datastore calls a volume of a database. Volumes have one of a few names, none of which contains a dash.
pub(crate) fn volume_name(database: &str, volume: &str) -> String {
    match database {
        "" => volume.to_string(),
        _ => format!("{database}-{volume}"),
    }
}

//! The datastore of a built-in design, without a study around it.
//!
//! Designs are only resolved as part of a study. So a study around the design is written, with volumes that fit
//! anywhere, and its plan asked.

use crate::host_view::HostView;
use crate::options::PlanOptions;
use crate::plan::DatastoreKind;
use crate::planner::check;
use crate::problem::Source;

/// Where the volumes of the built-in design of that name live; none if it is not known.
pub fn builtin_datastore(design: &str) -> Option<DatastoreKind> {
    crate::builtin::design(design)?;
    let text = format!(
        "name = \"around\"\nquestion = \"None.\"\n[volumes]\ndata = {{ capacity = \"2GiB\" }}\nwal = {{ capacity = \
         \"2GiB\" }}\nbackup = {{ capacity = \"2GiB\" }}\n[[design]]\nuse = \"{design}\"\n[workload.tpcc]\nwarehouses \
         = 1\n[procedure]\nusers = [1]\n[engine]\nmemory-limit = \"1GiB\"\n"
    );
    let source = Source { name: design.to_string(), text };
    let (_, plan) = check(&source, &PlanOptions::default(), &HostView::unlimited()).ok()?;
    plan.designs.into_iter().next().map(|design| design.kind)
}

#[cfg(test)]
mod tests {
    use super::builtin_datastore;
    use crate::builtin::design_names;
    use crate::plan::DatastoreKind;

    #[test]
    fn every_built_in_design_has_one() {
        for name in design_names() {
            assert!(builtin_datastore(name).is_some(), "{name}");
        }
        assert!(builtin_datastore("nothing").is_none());
        let bed = builtin_datastore("vmware-pm1725a");
        assert!(matches!(bed, Some(DatastoreKind::Cluster(_))));
    }
}

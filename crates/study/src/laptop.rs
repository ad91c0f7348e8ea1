//! The laptop size of a study: the study with the values of its `[laptop]` table in their places, at its scale.
//!
//! The values are put where an axis puts those of its points ([`crate::change`]), so that every key and every check of the
//! format holds for them, and problems are reported where the table has the value.

use toml::de::DeTable;

use crate::change::{Change, Setter, changed};
use crate::file;
use crate::options::PlanOptions;
use crate::reader::Keys;
use crate::report::Report;
use crate::section::Table as _;

const LAPTOP: Setter = Setter { table: "laptop", called: "`[laptop]`" };

/// What `[laptop]` cannot set, and why: the study would be another one.
const FIXED: [(&str, &str); 7] = [
    ("name", "it names the study at every size"),
    ("title", "it names the study at every size"),
    ("question", "the study asks the same at every size"),
    ("published", "it contains published results"),
    ("laptop", "the table cannot change itself"),
    ("engine.kind", "another engine is another study"),
    ("seed", "the study has the same seed at every size; use --seed"),
];

/// A study at the laptop size.
pub(crate) struct Shrunk<'t> {
    /// Its text, as tables.
    pub document: DeTable<'t>,
    /// The same as it was read.
    pub file: file::Study,
    /// The options, with the scale of the table where they have none.
    pub options: PlanOptions,
}

/// The study at its laptop size. `None` when it has none; the reason is reported.
pub(crate) fn shrunk<'t>(
    document: &DeTable<'t>,
    file: &file::Study,
    options: &PlanOptions,
    report: &mut Report,
) -> Option<Shrunk<'t>> {
    let table = &file.laptop;
    let Some(span) = &table.span else {
        report.add(
            None,
            "missing-key",
            "the study has no `[laptop]` table",
            "`--laptop` runs the study with its values",
            "run the study as it is, choose a --scale, or write the table",
        );
        return None;
    };
    if table.refused {
        return None;
    }
    if table.scale.is_absent() && table.set.is_empty() {
        report.at(
            span,
            "empty",
            "`[laptop]` is empty",
            "nothing is smaller than in the study",
            "add for example scale = \"1/16\", or remove the table",
        );
        return None;
    }
    let changes: Vec<Change> = table
        .set
        .iter()
        .map(|(path, value)| Change {
            path: path.clone(),
            path_span: value.span.clone(),
            value: value.clone(),
        })
        .collect();
    let mut is_fine = true;
    for change in &changes {
        let fixed = FIXED.iter().find(|(fixed, _)| {
            let rest = change.path.strip_prefix(fixed);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        if let Some((_, reason)) = fixed {
            report.at(
                &change.path_span,
                "cannot-vary",
                format!("`[laptop]` cannot set `{}`", change.path),
                *reason,
                "remove it, or write a study of its own",
            );
            is_fine = false;
        }
    }
    if !is_fine {
        return None;
    }
    let set: Vec<&Change> = changes.iter().collect();
    let document = changed(document, (LAPTOP, &set), report);
    let mut found = Report::default();
    let mut keys = Keys::new(&document, "", &mut found);
    let file = file::Study::read(&mut keys);
    keys.finish();
    report.absorb(found);
    let scale = options.scale.or(table.scale.get().copied());
    Some(Shrunk { document, file, options: PlanOptions { scale, ..options.clone() } })
}

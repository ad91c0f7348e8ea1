//! "For 10 % of the rows, selected at random": exactly that many, each set of rows equally likely.

use rand_pcg::Pcg64;

use crate::draw::uniform;

/// Selects `picks` of `rows` rows while they pass by (Knuth, volume 2, algorithm S).
#[derive(Clone, Debug)]
pub(super) struct Selection {
    rows: u32,
    picks: u32,
}

impl Selection {
    /// A tenth of `rows`.
    pub(super) const fn tenth_of(rows: u32) -> Selection {
        Selection { rows, picks: rows / 10 }
    }

    /// Whether the next row is selected.
    ///
    /// # Panics
    /// When asked for more rows than there are.
    pub(super) fn next(&mut self, random: &mut Pcg64) -> bool {
        assert!(self.rows > 0, "a selection is asked once per row");
        let selected = uniform(random, 1, self.rows) <= self.picks;
        self.rows -= 1;
        self.picks -= u32::from(selected);
        selected
    }
}

#[cfg(test)]
mod tests {
    use underlay_core::RootSeed;

    use super::Selection;

    #[test]
    fn exactly_a_tenth_is_selected_and_every_row_can_be() {
        let mut random = RootSeed(3).stream("selection", 0);
        let mut selected = [0u32; 50];
        for _ in 0..2_000 {
            let mut selection = Selection::tenth_of(50);
            let mut picks = 0;
            for count in &mut selected {
                let picked = u32::from(selection.next(&mut random));
                *count += picked;
                picks += picked;
            }
            assert_eq!(picks, 5);
        }
        // 200 expected per row, with a standard deviation of about 13.
        assert!(selected.iter().all(|count| (140..=260).contains(count)), "{selected:?}");
    }
}

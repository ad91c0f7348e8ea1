//! REVIEWS and REVIEWS_HELPFULNESS.

use super::date::Date;
use super::fields::Fields;
use super::table::Table;
use crate::dvdstore::Parameters;
use crate::dvdstore::random::{Counts, TableKey};
use crate::dvdstore::review_text::{SUMMARY_WORDS, TEXT_WORDS, push_words};

/// Ratings of a review: 2 to 39, 20.5 on average.
type RatingCounts = Counts<2, 39>;

#[derive(Clone, Debug)]
pub(super) struct Reviews {
    key: TableKey,
    ratings: TableKey,
    counts: RatingCounts,
    customers: u32,
    products: u32,
    text: String,
}

fn counts(parameters: &Parameters) -> RatingCounts {
    Counts::new(TableKey::new(parameters.seed, "reviews_helpfulness counts"))
}

/// Ratings of the first `reviews` reviews.
pub(super) fn ratings_before(parameters: &Parameters, reviews: u64) -> u64 {
    counts(parameters).of(reviews).1
}

impl Reviews {
    pub(super) fn new(parameters: &Parameters) -> Reviews {
        Reviews {
            key: TableKey::new(parameters.seed, "reviews"),
            ratings: TableKey::new(parameters.seed, "reviews_helpfulness"),
            counts: counts(parameters),
            customers: parameters.size.customers(),
            products: parameters.size.products(),
            text: String::new(),
        }
    }

    /// The review `number`, from 1, or its ratings.
    pub(super) fn write(&mut self, table: Table, number: u64, fields: &mut impl Fields) {
        if table == Table::Reviews {
            self.write_review(number, fields);
        } else {
            self.write_ratings(number, fields);
        }
    }

    fn write_review(&mut self, number: u64, fields: &mut impl Fields) {
        let mut random = self.key.row(number);
        fields.integer(number as i64);
        fields.integer(i64::from(random.uniform(1, self.products)));
        fields.date(Date::any(&mut random));
        fields.integer(i64::from(random.uniform(1, 5)));
        fields.integer(i64::from(random.uniform(1, self.customers)));
        self.text.clear();
        push_words(&mut self.text, &mut random, SUMMARY_WORDS);
        fields.text(&self.text);
        self.text.clear();
        let words = random.uniform(TEXT_WORDS.0, TEXT_WORDS.1);
        push_words(&mut self.text, &mut random, words);
        fields.text(&self.text);
        fields.end_row();
    }

    fn write_ratings(&mut self, number: u64, fields: &mut impl Fields) {
        let (count, before) = self.counts.of(number - 1);
        let mut random = self.ratings.row(number);
        for rating in 1..=u64::from(count) {
            fields.integer((before + rating) as i64);
            fields.integer(number as i64);
            fields.integer(i64::from(random.uniform(1, self.customers)));
            fields.integer(i64::from(random.uniform(1, 10)));
            fields.end_row();
        }
    }
}

//! What texts an engine has. The texts themselves are in the file of each engine.

use crate::connection::{Connection, RequestError, Sql};

/// The texts of an engine.
pub(crate) struct Dialect {
    /// The tables, without the keys that follow the rows.
    pub schema: &'static str,
    /// Keys and indexes, one statement per line, the longest first.
    pub keys: &'static str,
    /// Foreign keys, one statement per line.
    pub references: &'static str,
    /// The purchase, and the trigger that reorders.
    pub routines: &'static str,
    /// Creates the marker.
    pub marker: &'static str,
    /// Settings of a session.
    pub settings: &'static [&'static str],
    /// Begins a transaction that sees one state of the shop, with table names as in the checks and without limits.
    pub check_begin: &'static [&'static str],
    /// Lets the next inserted row of `{table}` have the `{key}` after `{last}`, where the server does not see to it.
    pub next_key: Option<&'static str>,
    /// Bytes that tables and indexes take.
    pub stored_bytes: &'static str,
    /// A search for all words of a text.
    pub all_words: fn(&str) -> String,
    /// The statements of [`Dialect::schema`] or [`Dialect::routines`].
    pub definitions: fn(&str) -> Vec<String>,
    /// The statements of the steps, each one round trip.
    pub statements: &'static Statements<Sql<'static>>,
}

/// Declares the statements of the steps.
macro_rules! statements {
    ($($name:ident,)+) => {
        /// One of something for each statement.
        pub(crate) struct Statements<T> { $(pub $name: T,)+ }

        impl Statements<Sql<'static>> {
            /// Prepares all of them.
            pub async fn prepare<C: Connection>(
                &self,
                connection: &mut C,
            ) -> Result<Statements<C::Statement>, RequestError> {
                Ok(Statements { $($name: connection.prepare(self.$name).await?,)+ })
            }

            /// Their texts.
            pub(super) fn texts(&self) -> Vec<&'static str> {
                vec![$(self.$name.text,)+]
            }
        }
    };
}

statements! {
    login, new_customer, new_member, browse_category, browse_actor, browse_title, reviews_by_actor, reviews_by_title, product_reviews, reviews_by_stars, reviews_by_date, new_review, rate_review, prices, purchase,
}

//! One step of a visit with all its inputs.

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A known customer logs in and sees the last purchases.
    Login,
    /// A customer registers.
    NewCustomer,
    /// A customer becomes a member.
    NewMember,
    /// Special products of a category.
    BrowseCategory,
    /// Products with an actor.
    BrowseActor,
    /// Products with a title.
    BrowseTitle,
    /// Reviews of products with an actor.
    ReviewsByActor,
    /// Reviews of products with a word in the title.
    ReviewsByTitle,
    /// Reviews of a product, the most helpful first.
    ProductReviews,
    /// The same, of so many stars.
    ProductReviewsByStars,
    /// Reviews of a product, the newest first.
    ProductReviewsByDate,
    /// Writes a review.
    NewReview,
    /// Rates a review.
    RateReview,
    /// Prices of what will be bought.
    Prices,
    /// Buys.
    Purchase,
}

impl Step {
    /// All, in the order of a visit.
    pub const ALL: [Step; 15] = [
        Step::Login,
        Step::NewCustomer,
        Step::NewMember,
        Step::BrowseCategory,
        Step::BrowseActor,
        Step::BrowseTitle,
        Step::ReviewsByActor,
        Step::ReviewsByTitle,
        Step::ProductReviews,
        Step::ProductReviewsByStars,
        Step::ProductReviewsByDate,
        Step::NewReview,
        Step::RateReview,
        Step::Prices,
        Step::Purchase,
    ];

    /// The word used in files and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Step::Login => "login",
            Step::NewCustomer => "new_customer",
            Step::NewMember => "new_member",
            Step::BrowseCategory => "browse_category",
            Step::BrowseActor => "browse_actor",
            Step::BrowseTitle => "browse_title",
            Step::ReviewsByActor => "reviews_by_actor",
            Step::ReviewsByTitle => "reviews_by_title",
            Step::ProductReviews => "product_reviews",
            Step::ProductReviewsByStars => "reviews_by_stars",
            Step::ProductReviewsByDate => "reviews_by_date",
            Step::NewReview => "new_review",
            Step::RateReview => "rate_review",
            Step::Prices => "prices",
            Step::Purchase => "purchase",
        }
    }

    /// Its place in [`Step::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it changes anything.
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Step::NewCustomer
                | Step::NewMember
                | Step::NewReview
                | Step::RateReview
                | Step::Purchase
        )
    }
}

/// A step with its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transaction {
    /// The customer `user<customer>`.
    Login {
        /// A customer of the population.
        customer: u32,
    },
    /// A registration.
    NewCustomer {
        /// The name wished for.
        username: String,
        /// What the other columns are drawn from; see [`super::population::write_customer`].
        draw: u64,
    },
    /// A membership.
    NewMember {
        /// Who.
        customer: u32,
        /// 1 to 3.
        level: u32,
    },
    /// Special products.
    BrowseCategory {
        /// 1 to 16.
        category: u32,
        /// Rows at most.
        batch: u32,
    },
    /// A search for products or reviews: all words of a text.
    Search {
        /// Which of the four searches.
        step: Step,
        /// The words.
        text: String,
        /// Rows at most.
        batch: u32,
        /// Reviews looked at, at most; of searches for products 0.
        depth: u32,
    },
    /// Reviews of a product.
    Reviews {
        /// Which of the three ways.
        step: Step,
        /// The product.
        product: u32,
        /// Of so many stars, where the way asks for them.
        stars: u32,
        /// Rows at most.
        batch: u32,
    },
    /// A new review.
    NewReview {
        /// The product.
        product: u32,
        /// The author.
        customer: u32,
        /// 1 to 5.
        stars: u32,
        /// Three words.
        summary: String,
        /// 6 to 129 words.
        text: String,
    },
    /// A rating.
    RateReview {
        /// A review of the population.
        review: u32,
        /// Who rates.
        customer: u32,
        /// 1 to 10.
        helpfulness: u32,
    },
    /// Prices.
    Prices {
        /// What will be bought.
        lines: Vec<Line>,
    },
    /// A purchase.
    Purchase {
        /// Who.
        customer: u32,
        /// What, by product.
        lines: Vec<Line>,
        /// Price of the lines in cents.
        net_cents: i64,
        /// Tax on it in cents.
        tax_cents: i64,
    },
}

/// A line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The product.
    pub product: u32,
    /// 1 to 3 pieces.
    pub quantity: u32,
}

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it was carried out. `false` where it was refused as intended: the name is taken, the customer is
    /// a member already, not enough in stock.
    pub committed: bool,
    /// The customer who logged in or registered; the review, rating or order that was written.
    pub id: Option<u32>,
    /// The price of the lines in cents, of [`Step::Prices`].
    pub net_cents: i64,
    /// Rows that were returned.
    pub rows_read: u32,
}

impl Outcome {
    /// Refused as intended.
    pub const REFUSED: Outcome = Outcome { committed: false, id: None, net_cents: 0, rows_read: 0 };

    /// Wrote something with a number.
    pub const fn wrote(id: u32) -> Outcome {
        Outcome { committed: true, id: Some(id), net_cents: 0, rows_read: 0 }
    }

    /// Returned rows.
    pub const fn read(rows_read: u32) -> Outcome {
        Outcome { committed: true, id: None, net_cents: 0, rows_read }
    }
}

impl Transaction {
    /// What it is.
    pub const fn step(&self) -> Step {
        match self {
            Transaction::Login { .. } => Step::Login,
            Transaction::NewCustomer { .. } => Step::NewCustomer,
            Transaction::NewMember { .. } => Step::NewMember,
            Transaction::BrowseCategory { .. } => Step::BrowseCategory,
            Transaction::Search { step, .. } | Transaction::Reviews { step, .. } => *step,
            Transaction::NewReview { .. } => Step::NewReview,
            Transaction::RateReview { .. } => Step::RateReview,
            Transaction::Prices { .. } => Step::Prices,
            Transaction::Purchase { .. } => Step::Purchase,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Step;

    #[test]
    fn indexes_follow_the_order() {
        for (index, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(step.index(), index);
        }
    }
}

//! The tables and indexes of the web shop on pages.
//!
//! Loaded rows lie in the order of their numbers. What visitors insert goes to the end of its table
//! and to the place of its key in an index. Which rows belong together (the orders of a customer,
//! the reviews of a product) was drawn when the shop was loaded: here it is a function of their
//! numbers with the same distribution. Not here: words and prices.

use super::Relation;
use crate::draw::scatter_below;
use crate::page::PageId;
use underlay_workload::dvdstore::Size;

/// Lines of an order on average (1 to 9).
pub const LINES_PER_ORDER: u64 = 5;
/// Reviews of a product on average.
pub const REVIEWS_PER_PRODUCT: u64 = 20;
/// InnoDB's undo pages in use at once: 16 of each of 128 rollback segments.
const UNDO_BLOCKS: u32 = 128 * 16;

/// The relations, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Table {
    /// The table `customers`.
    Customers,
    /// The table `membership`.
    Membership,
    /// The table `products`.
    Products,
    /// The table `inventory`.
    Inventory,
    /// The table `orders`.
    Orders,
    /// The table `orderlines`.
    OrderLines,
    /// The table `cust_hist`.
    CustHist,
    /// The table `reviews`.
    Reviews,
    /// The table `reviews_helpfulness`.
    Ratings,
    /// The index of customers by name.
    Usernames,
    /// The index of customers by name and password.
    Logins,
    /// The index of what customers bought.
    CustHistOfCustomer,
    /// The index of orders by customer.
    OrdersOfCustomer,
    /// The index of reviews by product.
    ReviewsOfProduct,
    /// The index of reviews by stars.
    ReviewsByStars,
    /// The index of reviews by product and stars.
    ReviewsOfProductByStars,
    /// The index of ratings by review.
    RatingsOfReview,
    /// The index of ratings by customer.
    RatingsOfCustomer,
    /// The indexes of words in titles and names of actors.
    ProductWords,
    /// The four indexes of products by category, speciality and both, and of those for members.
    ProductsByKind,
    /// The primary key of `customers`, and so on: relations of their own where tables are heaps.
    CustomersKey,
    /// The primary key of `membership`.
    MembershipKey,
    /// The primary key of `products`.
    ProductsKey,
    /// The primary key of `inventory`.
    InventoryKey,
    /// The primary key of `orders`.
    OrdersKey,
    /// The key of `orderlines`.
    OrderLinesKey,
    /// The primary key of `reviews`.
    ReviewsKey,
    /// The primary key of `reviews_helpfulness`.
    RatingsKey,
    /// InnoDB's undo log.
    Undo,
}

/// What a relation has rows or entries of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Customers,
    Members,
    Products,
    Orders,
    Lines,
    Reviews,
    Ratings,
}

/// Rows or entries on a page.
#[derive(Clone, Copy, Debug)]
struct Form {
    name: &'static str,
    of: Of,
    /// 8 KiB pages with 8,168 usable bytes: a row has a header of 24 bytes and a pointer of 4, an
    /// index entry 8 and 4 on leaves filled to 90 %; equal keys are stored once.
    postgresql: u32,
    /// 16 KiB pages filled to 15/16, rows with a header of 5 bytes and 13 of versions; 0 where the
    /// table itself is the index.
    innodb: u32,
    /// Bytes of a page image: of heaps, of leaves.
    image_bytes: u32,
    is_heap: bool,
}

const fn heap(name: &'static str, of: Of, postgresql: u32, innodb: u32) -> Form {
    Form { name, of, postgresql, innodb, image_bytes: 7_900, is_heap: true }
}

const fn leaf(name: &'static str, of: Of, postgresql: u32, innodb: u32) -> Form {
    Form { name, of, postgresql, innodb, image_bytes: 7_400, is_heap: false }
}

/// By [`Table`], without the undo log.
const FORMS: [Form; Table::Undo as usize] = [
    heap("customers", Of::Customers, 32, 62),
    heap("membership", Of::Members, 185, 540),
    heap("products", Of::Products, 85, 190),
    heap("inventory", Of::Products, 157, 500),
    heap("orders", Of::Orders, 120, 340),
    heap("orderlines", Of::Lines, 157, 460),
    heap("cust_hist", Of::Lines, 185, 420),
    heap("reviews", Of::Reviews, 15, 27),
    heap("reviews_helpfulness", Of::Ratings, 185, 467),
    leaf("customers_username", Of::Customers, 262, 640),
    leaf("customers_login", Of::Customers, 204, 480),
    leaf("cust_hist_customer", Of::Lines, 490, 1_000),
    leaf("orders_customer", Of::Orders, 400, 1_090),
    leaf("reviews_product", Of::Reviews, 900, 1_180),
    leaf("reviews_stars", Of::Reviews, 1_200, 1_390),
    leaf("reviews_product_stars", Of::Reviews, 550, 1_020),
    leaf("reviews_helpfulness_review", Of::Ratings, 900, 1_048),
    leaf("reviews_helpfulness_customer", Of::Ratings, 420, 1_180),
    leaf("products_words", Of::Products, 1_000, 600),
    leaf("products_kinds", Of::Products, 290, 300),
    leaf("customers_pkey", Of::Customers, 367, 0),
    leaf("membership_pkey", Of::Members, 367, 0),
    leaf("products_pkey", Of::Products, 367, 0),
    leaf("inventory_pkey", Of::Products, 367, 0),
    leaf("orders_pkey", Of::Orders, 367, 0),
    leaf("orderlines_order", Of::Lines, 367, 0),
    leaf("reviews_pkey", Of::Reviews, 367, 0),
    leaf("reviews_helpfulness_pkey", Of::Ratings, 367, 0),
];

/// Pages of the shop's rows. Rows of a table are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopPages {
    size: Size,
    is_clustered: bool,
}

impl ShopPages {
    /// On PostgreSQL.
    pub fn postgresql(size: Size) -> ShopPages {
        ShopPages { size, is_clustered: false }
    }

    /// On InnoDB.
    pub fn innodb(size: Size) -> ShopPages {
        ShopPages { size, is_clustered: true }
    }

    /// Whether rows lie in the leaves of their primary keys.
    pub fn is_clustered(&self) -> bool {
        self.is_clustered
    }

    fn rows_of(&self, of: Of) -> u64 {
        let size = self.size;
        match of {
            Of::Customers => u64::from(size.customers()),
            Of::Members => u64::from(size.members()),
            Of::Products => u64::from(size.products()),
            Of::Orders => u64::from(size.orders()),
            Of::Lines => u64::from(size.orders()) * LINES_PER_ORDER,
            Of::Reviews => u64::from(size.reviews()),
            Of::Ratings => Self::first_rating(u64::from(size.reviews())),
        }
    }

    /// Rows of a table, or entries of an index, when the shop is loaded.
    pub fn rows(&self, table: Table) -> u64 {
        self.rows_of(FORMS[table as usize].of)
    }

    fn per(&self, table: Table) -> u64 {
        let Form { postgresql, innodb, .. } = FORMS[table as usize];
        u64::from(if self.is_clustered { innodb } else { postgresql })
    }

    fn pages(&self, table: Table) -> u64 {
        match self.per(table) {
            0 => 0,
            per => self.rows(table).div_ceil(per),
        }
    }

    /// The relations with their initial sizes.
    pub fn relations(&self) -> Vec<Relation> {
        let relation = |form: &Form| {
            let per = if self.is_clustered { form.innodb } else { form.postgresql };
            let blocks = match per {
                0 => 0,
                per => self.rows_of(form.of).div_ceil(u64::from(per)),
            };
            Relation {
                name: form.name,
                // The largest shop stays far below 2^32 pages.
                blocks: blocks as u32,
                rows: if form.is_heap { self.rows_of(form.of) } else { 0 },
                image_bytes: form.image_bytes,
                is_heap: form.is_heap,
                grows: form.of != Of::Products,
            }
        };
        let undo = if self.is_clustered { UNDO_BLOCKS } else { 0 };
        let undo = Relation::undo(undo);
        FORMS.iter().map(relation).chain([undo]).collect()
    }

    /// The page of a row of a table, or of an entry of an index whose order is that of the rows.
    pub fn row(&self, table: Table, row: u64) -> PageId {
        PageId::new(table as u16, (row / self.per(table).max(1)) as u32)
    }

    /// The leaf of a row's key and the page of the row, which are the same where rows are
    /// clustered.
    pub fn keyed(&self, key: Table, table: Table, row: u64) -> [PageId; 2] {
        let page = self.row(table, row);
        if self.is_clustered { [page, page] } else { [self.row(key, row), page] }
    }

    /// The leaf of a row's entry in an index whose order has nothing to do with that of the rows.
    pub fn scattered(&self, index: Table, row: u64) -> PageId {
        let key = (index as u64) << 48 | row;
        PageId::new(index as u16, scatter_below(key, self.pages(index).max(1)) as u32)
    }

    /// The leaf of the entries of a parent in an index by parents: customer, product or review
    /// `parent`, from 0, of so many when the shop was loaded. Later parents lie behind them.
    pub fn of_parent(&self, index: Table, parent: u64, parents: u64) -> PageId {
        let leaves = self.pages(index).max(1);
        let leaf = match parent.checked_sub(parents) {
            None => parent * leaves / parents,
            Some(later) => leaves + later / self.per(index).max(1),
        };
        PageId::new(index as u16, leaf as u32)
    }

    /// The first rating of a review, which its other ones follow: 2 to 39, 20.5 on average.
    pub fn first_rating(review: u64) -> u64 {
        review * 41 / 2
    }

    /// Where the ratings of a review are: the leaf of their index, and the page of their rows. On InnoDB
    /// the index has the ratings themselves, and no row is read.
    pub fn ratings_of(&self, review: u64) -> (PageId, Option<PageId>) {
        let leaf = self.of_parent(Table::RatingsOfReview, review, self.rows(Table::Reviews));
        let rows = || self.row(Table::Ratings, Self::first_rating(review));
        (leaf, (!self.is_clustered).then(rows))
    }

    /// A loaded order of a customer, `number` of them from 0.
    pub fn order_of(&self, customer: u64, number: u64) -> u64 {
        scatter_below(1 << 62 | customer << 8 | number, self.rows(Table::Orders))
    }

    /// A loaded review of a product, `number` of them from 0.
    pub fn review_of(&self, product: u64, number: u64) -> u64 {
        scatter_below(1 << 61 | product << 8 | number, self.rows(Table::Reviews))
    }

    /// The page of the undo records of the `n`-th transaction.
    pub fn undo(number: u64) -> PageId {
        // A segment's page is used for several transactions before the next one.
        PageId::new(Table::Undo as u16, (number % 128 * 16 + number / 128 / 16 % 16) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::{ShopPages, Table};
    use underlay_workload::dvdstore::Size;

    fn bytes(pages: ShopPages, page: u64) -> u64 {
        pages.relations().iter().map(|relation| u64::from(relation.blocks) * page).sum()
    }

    #[test]
    fn a_shop_takes_what_one_takes_on_a_server() {
        let size = |text: &str| text.parse::<Size>().expect("a size");
        // Measured on a loaded PostgreSQL: 460 MB. Customers of a small shop have a hundred times
        // as many ratings as those of a large one, which its index stores in less space.
        let small = bytes(ShopPages::postgresql(Size::SMALL), 8_192);
        assert!((415_000_000..=535_000_000).contains(&small), "{small}");
        // The size that vmware/v2 takes for the 192 GB of its publication.
        let large = bytes(ShopPages::postgresql(size("80GB")), 8_192) as f64;
        assert!((165e9..=215e9).contains(&large), "{large}");
        let innodb = bytes(ShopPages::innodb(size("80GB")), 16_384) as f64;
        assert!(innodb > 0.5 * large && innodb < large, "{innodb}");
    }

    #[test]
    fn rows_lie_within_their_relations_and_later_ones_behind_them() {
        for pages in [ShopPages::postgresql(Size::SMALL), ShopPages::innodb(Size::SMALL)] {
            let relations = pages.relations();
            let is_inside = |page: crate::page::PageId| {
                page.block() < relations[usize::from(page.relation())].blocks
            };
            let keyed = [
                (Table::CustomersKey, Table::Customers),
                (Table::ProductsKey, Table::Products),
                (Table::RatingsKey, Table::Ratings),
            ];
            for (key, table) in keyed {
                let rows = pages.rows(table);
                assert!(pages.keyed(key, table, 0).into_iter().all(is_inside), "{table:?}");
                assert!(pages.keyed(key, table, rows - 1).into_iter().all(is_inside), "{table:?}");
                assert!(!is_inside(pages.row(table, rows + 1_000)), "{table:?}");
            }
            let customers = pages.rows(Table::Customers);
            for index in [Table::OrdersOfCustomer, Table::CustHistOfCustomer] {
                assert!(is_inside(pages.of_parent(index, customers - 1, customers)));
                assert!(!is_inside(pages.of_parent(index, customers, customers)));
            }
            assert!(is_inside(pages.scattered(Table::Logins, customers * 3)));
            let review = pages.review_of(9_999, 19);
            let (leaf, rows) = pages.ratings_of(review);
            assert!(is_inside(leaf) && rows.is_none_or(is_inside));
            assert_eq!(rows.is_none(), pages.is_clustered(), "InnoDB's index has the ratings");
            assert!(pages.order_of(19_999, 3) < pages.rows(Table::Orders));
        }
    }
}

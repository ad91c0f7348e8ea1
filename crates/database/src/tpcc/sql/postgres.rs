//! PostgreSQL's texts.

use super::dialect::{Calls, Dialect};
use crate::connection::Kind::{Decimal, Int, Ints, Smalls, Varchar};
use crate::connection::Sql;

/// Statements are planned once per session: their plans do not depend on the values, and planning again would be charged to the
/// database. Every access is by a key: a table of a few pages would otherwise be read as a whole, by a plan that stays when
/// old row versions have made it long.
pub(super) const DIALECT: Dialect = Dialect {
    schema: include_str!("postgres/schema.sql"),
    keys: include_str!("postgres/keys.sql"),
    procedures: include_str!("postgres/procedures.sql"),
    marker: "CREATE TABLE tpcc.underlay_population ( \
    format integer NOT NULL, warehouses integer NOT NULL, seed bigint NOT NULL, entropy smallint NOT NULL, \
    identity text NOT NULL, complete boolean NOT NULL)",
    settings: &["SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"],
    // The schema may be there already.
    definitions: |text| vec![text.replace("CREATE SCHEMA tpcc;", "")],
    calls: Calls {
        new_order: Sql::typed(
            "SELECT tpcc.new_order_transaction($1, $2, $3, $4, $5, $6, $7, $8)",
            &[Int, Int, Int, Smalls, Ints, Ints, Smalls, Smalls],
        )
        .composite(),
        payment: Sql::typed(
            "SELECT tpcc.payment_transaction($1, $2, $3, $4, $5, $6, $7)",
            &[Int, Int, Int, Int, Int, Varchar, Decimal],
        ),
        order_status: Sql::typed(
            "SELECT tpcc.order_status_transaction($1, $2, $3, $4)",
            &[Int, Int, Int, Varchar],
        ),
        delivery: Sql::typed("SELECT tpcc.delivery_transaction($1, $2)", &[Int, Int]).composite(),
        stock_level: Sql::typed(
            "SELECT tpcc.stock_level_transaction($1, $2, $3)",
            &[Int, Int, Int],
        ),
    },
    drawn_new_order: Sql::typed(include_str!("postgres/drawn_new_order.sql"), &[Int; 5])
        .composite(),
};

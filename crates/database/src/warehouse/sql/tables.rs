//! The tables, their keys and their indexes, as all engines understand them but for what [`Dialect`] has.

use super::dialect::Dialect;
use crate::warehouse::rows::Table;

/// Each table, its columns with the types that the specification asks for, and its primary key. `@` stands for what says
/// that texts are compared byte by byte.
const TABLES: [(Table, &str, &str); 8] = [
    (
        Table::Region,
        "r_regionkey integer NOT NULL, r_name char(25) @ NOT NULL, \
         r_comment varchar(152) @ NOT NULL",
        "r_regionkey",
    ),
    (
        Table::Nation,
        "n_nationkey integer NOT NULL, n_name char(25) @ NOT NULL, \
         n_regionkey integer NOT NULL, n_comment varchar(152) @ NOT NULL",
        "n_nationkey",
    ),
    (
        Table::Supplier,
        "s_suppkey integer NOT NULL, s_name char(25) @ NOT NULL, \
         s_address varchar(40) @ NOT NULL, s_nationkey integer NOT NULL, \
         s_phone char(15) @ NOT NULL, s_acctbal decimal(15,2) NOT NULL, \
         s_comment varchar(101) @ NOT NULL",
        "s_suppkey",
    ),
    (
        Table::Part,
        "p_partkey integer NOT NULL, p_name varchar(55) @ NOT NULL, \
         p_mfgr char(25) @ NOT NULL, p_brand char(10) @ NOT NULL, \
         p_type varchar(25) @ NOT NULL, p_size integer NOT NULL, \
         p_container char(10) @ NOT NULL, p_retailprice decimal(15,2) NOT NULL, \
         p_comment varchar(23) @ NOT NULL",
        "p_partkey",
    ),
    (
        Table::PartSupplier,
        "ps_partkey integer NOT NULL, ps_suppkey integer NOT NULL, \
         ps_availqty integer NOT NULL, ps_supplycost decimal(15,2) NOT NULL, \
         ps_comment varchar(199) @ NOT NULL",
        "ps_partkey, ps_suppkey",
    ),
    (
        Table::Customer,
        "c_custkey integer NOT NULL, c_name varchar(25) @ NOT NULL, \
         c_address varchar(40) @ NOT NULL, c_nationkey integer NOT NULL, \
         c_phone char(15) @ NOT NULL, c_acctbal decimal(15,2) NOT NULL, \
         c_mktsegment char(10) @ NOT NULL, c_comment varchar(117) @ NOT NULL",
        "c_custkey",
    ),
    (
        Table::Orders,
        "o_orderkey bigint NOT NULL, o_custkey integer NOT NULL, \
         o_orderstatus char(1) @ NOT NULL, o_totalprice decimal(15,2) NOT NULL, \
         o_orderdate date NOT NULL, o_orderpriority char(15) @ NOT NULL, \
         o_clerk char(15) @ NOT NULL, o_shippriority integer NOT NULL, \
         o_comment varchar(79) @ NOT NULL",
        "o_orderkey",
    ),
    (
        Table::Lines,
        "l_orderkey bigint NOT NULL, l_partkey integer NOT NULL, l_suppkey integer NOT NULL, \
         l_linenumber integer NOT NULL, l_quantity decimal(15,2) NOT NULL, \
         l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL, \
         l_tax decimal(15,2) NOT NULL, l_returnflag char(1) @ NOT NULL, \
         l_linestatus char(1) @ NOT NULL, l_shipdate date NOT NULL, \
         l_commitdate date NOT NULL, l_receiptdate date NOT NULL, \
         l_shipinstruct char(25) @ NOT NULL, l_shipmode char(10) @ NOT NULL, \
         l_comment varchar(44) @ NOT NULL",
        "l_orderkey, l_linenumber",
    ),
];
/// On foreign keys and on the two days that questions are asked of: what the specification allows.
const INDEXES: [&str; 8] = [
    "CREATE INDEX lineitem_partsupp ON lineitem (l_partkey, l_suppkey)",
    "CREATE INDEX lineitem_shipdate ON lineitem (l_shipdate)",
    "CREATE INDEX orders_customer ON orders (o_custkey)",
    "CREATE INDEX orders_date ON orders (o_orderdate)",
    "CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey)",
    "CREATE INDEX customer_nation ON customer (c_nationkey)",
    "CREATE INDEX supplier_nation ON supplier (s_nationkey)",
    "CREATE INDEX nation_region ON nation (n_regionkey)",
];

/// Creates the tables.
pub(in crate::warehouse) fn tables(dialect: &Dialect) -> Vec<String> {
    let create = |(table, columns, key): (Table, &str, &str)| {
        let columns = columns.replace('@', dialect.collation);
        filled(dialect.table, table, key).replace("{columns}", &columns)
    };
    TABLES.map(create).to_vec()
}

/// Creates what is made after the rows: indexes, and primary keys where they are not there yet.
pub(in crate::warehouse) fn keys(dialect: &Dialect) -> Vec<String> {
    let indexes = INDEXES.map(str::to_string);
    let primary = |text| TABLES.map(|(table, _, key)| filled(text, table, key));
    indexes.into_iter().chain(dialect.primary_key.into_iter().flat_map(primary)).collect()
}

fn filled(text: &str, table: Table, key: &str) -> String {
    text.replace("{table}", table.name()).replace("{key}", key)
}

//! The 22 questions in SQL that both engines understand.
//!
//! Days are computed here, so that no engine's arithmetic of days is needed. Where the specification leaves the order of
//! equal rows open, a key decides: an answer is then one answer.

use underlay_workload::warehouse::words::{NATIONS, REGIONS};
use underlay_workload::warehouse::{Day, Query, Scale};

/// The statement that asks a question of a warehouse of some size.
pub fn sql(query: &Query, scale: Scale) -> String {
    let nation = |key: usize| NATIONS[key].0;
    let year =
        |column: &str, year: i32| between(column, Day::new(year, 1, 1), Day::new(year + 1, 1, 1));
    match query {
        Query::PricingSummary { last_shipped } => format!(
            "SELECT l_returnflag, l_linestatus, sum(l_quantity) AS quantity, sum(l_extendedprice) AS price, \
               sum(l_extendedprice * (1 - l_discount)) AS discounted, \
               sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charged, \
               avg(l_quantity) AS mean_quantity, avg(l_extendedprice) AS mean_price, \
               avg(l_discount) AS mean_discount, count(*) AS line_count \
             FROM lineitem WHERE l_shipdate <= DATE '{last_shipped}' \
             GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus"
        ),
        Query::MinimumCostSupplier { size, kind_end, region } => {
            let region = REGIONS[*region];
            format!(
                "SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment \
                 FROM part JOIN partsupp ON ps_partkey = p_partkey JOIN supplier ON s_suppkey = ps_suppkey \
                   JOIN nation ON n_nationkey = s_nationkey JOIN region ON r_regionkey = n_regionkey \
                 WHERE p_size = {size} AND p_type LIKE '%{kind_end}' AND r_name = '{region}' \
                   AND ps_supplycost = (SELECT min(o.ps_supplycost) FROM partsupp o \
                     JOIN supplier os ON os.s_suppkey = o.ps_suppkey \
                     JOIN nation n2 ON n2.n_nationkey = os.s_nationkey \
                     JOIN region r2 ON r2.r_regionkey = n2.n_regionkey \
                     WHERE o.ps_partkey = p_partkey AND r2.r_name = '{region}') \
                 ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100"
            )
        }
        Query::ShippingPriority { segment, date } => format!(
            "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority \
             FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey \
             WHERE c_mktsegment = '{segment}' AND o_orderdate < DATE '{date}' AND l_shipdate > DATE '{date}' \
             GROUP BY l_orderkey, o_orderdate, o_shippriority \
             ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10"
        ),
        Query::OrderPriority { from, to } => format!(
            "SELECT o_orderpriority, count(*) AS order_count FROM orders WHERE {} \
               AND EXISTS (SELECT 1 FROM lineitem \
                 WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) \
             GROUP BY o_orderpriority ORDER BY o_orderpriority",
            between("o_orderdate", *from, *to)
        ),
        Query::LocalSupplierVolume { region, year: in_year } => format!(
            "SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue \
             FROM region JOIN nation ON n_regionkey = r_regionkey JOIN customer ON c_nationkey = n_nationkey \
               JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey \
               JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey \
             WHERE r_name = '{}' AND {} GROUP BY n_name ORDER BY revenue DESC, n_name",
            REGIONS[*region],
            year("o_orderdate", *in_year)
        ),
        Query::ForecastRevenue { year: in_year, discount, quantity } => format!(
            "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem \
             WHERE {} AND l_discount BETWEEN 0.{:02} AND 0.{:02} AND l_quantity < {quantity}",
            year("l_shipdate", *in_year),
            discount - 1,
            discount + 1
        ),
        Query::VolumeShipping { nations: [a, b] } => {
            let (a, b) = (nation(*a), nation(*b));
            format!(
                "SELECT sn.n_name AS supp_nation, cn.n_name AS cust_nation, \
                   extract(YEAR FROM l_shipdate) AS l_year, sum(l_extendedprice * (1 - l_discount)) AS revenue \
                 FROM lineitem JOIN supplier ON s_suppkey = l_suppkey JOIN nation sn ON sn.n_nationkey = s_nationkey \
                   JOIN orders ON o_orderkey = l_orderkey JOIN customer ON c_custkey = o_custkey \
                   JOIN nation cn ON cn.n_nationkey = c_nationkey \
                 WHERE (sn.n_name = '{a}' AND cn.n_name = '{b}' OR sn.n_name = '{b}' AND cn.n_name = '{a}') \
                   AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' \
                 GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year"
            )
        }
        Query::MarketShare { nation: of, kind } => format!(
            "SELECT extract(YEAR FROM o_orderdate) AS o_year, \
               sum(CASE WHEN sn.n_name = '{}' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) \
                 / sum(l_extendedprice * (1 - l_discount)) AS mkt_share \
             FROM part JOIN lineitem ON l_partkey = p_partkey JOIN orders ON o_orderkey = l_orderkey \
               JOIN customer ON c_custkey = o_custkey JOIN nation cn ON cn.n_nationkey = c_nationkey \
               JOIN region ON r_regionkey = cn.n_regionkey JOIN supplier ON s_suppkey = l_suppkey \
               JOIN nation sn ON sn.n_nationkey = s_nationkey \
             WHERE p_type = '{kind}' AND r_name = '{}' \
               AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' \
             GROUP BY o_year ORDER BY o_year",
            nation(*of),
            REGIONS[NATIONS[*of].1]
        ),
        Query::ProductTypeProfit { color } => format!(
            "SELECT n_name AS nation, extract(YEAR FROM o_orderdate) AS o_year, \
               sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS sum_profit \
             FROM part JOIN lineitem ON l_partkey = p_partkey \
               JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey \
               JOIN supplier ON s_suppkey = l_suppkey JOIN nation ON n_nationkey = s_nationkey \
               JOIN orders ON o_orderkey = l_orderkey \
             WHERE p_name LIKE '%{color}%' GROUP BY nation, o_year ORDER BY nation, o_year DESC"
        ),
        Query::ReturnedItems { from, to } => format!(
            "SELECT c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, \
               c_address, c_phone, c_comment \
             FROM orders JOIN lineitem ON l_orderkey = o_orderkey JOIN customer ON c_custkey = o_custkey \
               JOIN nation ON n_nationkey = c_nationkey \
             WHERE {} AND l_returnflag = 'R' \
             GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment \
             ORDER BY revenue DESC, c_custkey LIMIT 20",
            between("o_orderdate", *from, *to)
        ),
        Query::ImportantStock { nation: of } => {
            let source = format!(
                "FROM partsupp JOIN supplier ON s_suppkey = ps_suppkey \
                 JOIN nation ON n_nationkey = s_nationkey WHERE n_name = '{}'",
                nation(*of)
            );
            // 0.0001 / SF, exactly, with the scale factor in hundredths.
            format!(
                "SELECT ps_partkey, sum(ps_supplycost * ps_availqty) AS value {source} GROUP BY ps_partkey \
                 HAVING sum(ps_supplycost * ps_availqty) * {} > \
                   (SELECT sum(ps_supplycost * ps_availqty) {source}) \
                 ORDER BY value DESC, ps_partkey",
                u64::from(scale.hundredths()) * 100
            )
        }
        Query::ShippingModes { modes: [a, b], year: in_year } => format!(
            "SELECT l_shipmode, \
               sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count, \
               sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 0 ELSE 1 END) AS low_line_count \
             FROM orders JOIN lineitem ON l_orderkey = o_orderkey \
             WHERE l_shipmode IN ('{a}', '{b}') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate \
               AND {} GROUP BY l_shipmode ORDER BY l_shipmode",
            year("l_receiptdate", *in_year)
        ),
        Query::CustomerDistribution { words: [first, second] } => format!(
            "SELECT c_count, count(*) AS custdist FROM \
               (SELECT c_custkey, count(o_orderkey) AS c_count FROM customer \
                  LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%{first}%{second}%' \
                GROUP BY c_custkey) AS counted \
             GROUP BY c_count ORDER BY custdist DESC, c_count DESC"
        ),
        Query::PromotionEffect { from, to } => format!(
            "SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) \
               ELSE 0 END) / sum(l_extendedprice * (1 - l_discount)) AS promo_revenue \
             FROM lineitem JOIN part ON p_partkey = l_partkey WHERE {}",
            between("l_shipdate", *from, *to)
        ),
        Query::TopSupplier { from, to } => format!(
            "WITH revenue AS (SELECT l_suppkey AS supplier_no, \
                 sum(l_extendedprice * (1 - l_discount)) AS total_revenue \
               FROM lineitem WHERE {} GROUP BY l_suppkey) \
             SELECT s_suppkey, s_name, s_address, s_phone, total_revenue \
             FROM supplier JOIN revenue ON supplier_no = s_suppkey \
             WHERE total_revenue = (SELECT max(total_revenue) FROM revenue) ORDER BY s_suppkey",
            between("l_shipdate", *from, *to)
        ),
        Query::PartSupplierRelationship { brand, kind_start, sizes } => format!(
            "SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt \
             FROM partsupp JOIN part ON p_partkey = ps_partkey \
             WHERE p_brand <> 'Brand#{brand}' AND p_type NOT LIKE '{kind_start}%' AND p_size IN ({}) \
               AND ps_suppkey NOT IN \
                 (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%') \
             GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size",
            list(sizes)
        ),
        Query::SmallQuantityRevenue { brand, container } => format!(
            "SELECT sum(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem JOIN part ON p_partkey = l_partkey \
             WHERE p_brand = 'Brand#{brand}' AND p_container = '{container}' \
               AND l_quantity < (SELECT 0.2 * avg(o.l_quantity) FROM lineitem o WHERE o.l_partkey = p_partkey)"
        ),
        Query::LargeVolumeCustomers { quantity } => format!(
            "SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity \
             FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey \
             WHERE o_orderkey IN \
               (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > {quantity}) \
             GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice \
             ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100"
        ),
        Query::DiscountedRevenue { quantities, brands } => {
            let case = |index: usize, containers: &str, largest: u32| {
                format!(
                    "p_brand = 'Brand#{}' AND p_container IN ({containers}) \
                     AND l_quantity BETWEEN {} AND {} AND p_size BETWEEN 1 AND {largest}",
                    brands[index],
                    quantities[index],
                    quantities[index] + 10
                )
            };
            // The modes are those that the specification names; there are no lines with the second.
            format!(
                "SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue \
                 FROM lineitem JOIN part ON p_partkey = l_partkey \
                 WHERE l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON' \
                   AND ({} OR {} OR {})",
                case(0, "'SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'", 5),
                case(1, "'MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'", 10),
                case(2, "'LG CASE', 'LG BOX', 'LG PACK', 'LG PKG'", 15)
            )
        }
        Query::PotentialPromotion { color, year: in_year, nation: of } => format!(
            "SELECT s_name, s_address FROM supplier JOIN nation ON n_nationkey = s_nationkey \
             WHERE n_name = '{}' AND s_suppkey IN \
               (SELECT ps_suppkey FROM partsupp \
                 WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '{color}%') \
                   AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM lineitem \
                     WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND {})) \
             ORDER BY s_name",
            nation(*of),
            year("l_shipdate", *in_year)
        ),
        Query::SuppliersKeptWaiting { nation: of } => format!(
            "SELECT s_name, count(*) AS numwait \
             FROM nation JOIN supplier ON s_nationkey = n_nationkey JOIN lineitem l ON l.l_suppkey = s_suppkey \
               JOIN orders ON o_orderkey = l.l_orderkey \
             WHERE n_name = '{}' AND o_orderstatus = 'F' AND l.l_receiptdate > l.l_commitdate \
               AND EXISTS (SELECT 1 FROM lineitem o \
                 WHERE o.l_orderkey = l.l_orderkey AND o.l_suppkey <> l.l_suppkey) \
               AND NOT EXISTS (SELECT 1 FROM lineitem o WHERE o.l_orderkey = l.l_orderkey \
                 AND o.l_suppkey <> l.l_suppkey AND o.l_receiptdate > o.l_commitdate) \
             GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100",
            nation(*of)
        ),
        Query::GlobalSales { codes } => {
            let is_meant = format!("substring(c_phone FROM 1 FOR 2) IN ({})", texts(codes));
            format!(
                "SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM \
                   (SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer \
                     WHERE {is_meant} \
                       AND c_acctbal > (SELECT avg(c_acctbal) FROM customer WHERE c_acctbal > 0.00 AND {is_meant}) \
                       AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)) AS custsale \
                 GROUP BY cntrycode ORDER BY cntrycode"
            )
        }
    }
}

/// From a day on, before another.
fn between(column: &str, from: Day, to: Day) -> String {
    format!("{column} >= DATE '{from}' AND {column} < DATE '{to}'")
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn texts(numbers: &[u32]) -> String {
    numbers.iter().map(|number| format!("'{number}'")).collect::<Vec<_>>().join(", ")
}

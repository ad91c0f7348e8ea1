-- New-Order whose lines the database draws (profile `hammerdb-like`): warehouse, district, customer; then once
-- more warehouse, warehouses, number of lines. Items are uniform, 1 % of the lines come from another warehouse, 1 % of
-- the orders end in an item that does not exist and roll back. The order itself is entered by the same
-- procedure as any other. The recursion is materialized, so that a number is drawn once and not once per mention.
CALL new_order_transaction(?, ?, ?, (
  WITH RECURSIVE given AS (
    SELECT cast(? AS signed) AS home, cast(? AS signed) AS warehouses, cast(? AS signed) AS wanted
  ), rolls AS (
    SELECT home, warehouses, wanted, rand() < 0.01 AS back FROM given
  ), drawn AS (
    SELECT home, warehouses, wanted, back, 0 AS number, cast(0 AS signed) AS item, home AS supply,
           cast(0 AS signed) AS quantity
      FROM rolls
     UNION ALL
    SELECT home, warehouses, wanted, back, number + 1,
           CASE WHEN back AND number + 1 = wanted THEN 100001
                ELSE cast(1 + floor(rand() * 100000) AS signed) END,
           CASE WHEN warehouses > 1 AND rand() < 0.01
                THEN 1 + (home + cast(floor(rand() * (warehouses - 1)) AS signed)) % warehouses
                ELSE home END,
           cast(1 + floor(rand() * 10) AS signed)
      FROM drawn
     WHERE number < wanted
  )
  SELECT group_concat(concat(lpad(number, 2, '0'), lpad(item, 6, '0'), lpad(supply, 10, '0'), lpad(quantity, 2, '0'))
                      ORDER BY supply, item, number SEPARATOR '')
    FROM drawn
   WHERE number > 0))

-- New-Order whose lines the database draws (profile `hammerdb-like`): $1 warehouse, $2 district, $3 customer,
-- $4 number of lines, $5 warehouses. Items are uniform, 1 % of the lines come from another warehouse, 1 % of
-- the orders end in an item that does not exist and roll back. The order itself is entered by the same
-- function as any other. Each step is materialized, so that a number is drawn once and not once per mention.
WITH rolls AS MATERIALIZED (
  SELECT random() < 0.01 AS back
), drawn AS MATERIALIZED (
  SELECT number,
         CASE WHEN back AND number = $4 THEN 100001 ELSE 1 + floor(random() * 100000)::integer END AS item,
         CASE WHEN $5 > 1 AND random() < 0.01
              THEN 1 + ($1 + floor(random() * ($5 - 1))::integer) % $5 ELSE $1 END AS supply,
         (1 + floor(random() * 10))::smallint AS quantity
    FROM rolls, generate_series(1, $4) AS number
), rounds AS MATERIALIZED (
  SELECT number::smallint AS number, item, supply, quantity,
         (row_number() OVER (PARTITION BY supply, item ORDER BY number))::smallint AS round
    FROM drawn
), lines AS MATERIALIZED (
  SELECT array_agg(number ORDER BY supply, item, round) AS numbers,
         array_agg(item ORDER BY supply, item, round) AS items,
         array_agg(supply ORDER BY supply, item, round) AS supplies,
         array_agg(quantity ORDER BY supply, item, round) AS quantities,
         array_agg(round ORDER BY supply, item, round) AS rounds
    FROM rounds
)
SELECT tpcc.new_order_transaction($1, $2, $3, numbers, items, supplies, quantities, rounds) FROM lines

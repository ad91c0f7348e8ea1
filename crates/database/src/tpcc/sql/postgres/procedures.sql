-- The five transactions as functions: one round trip each, inputs chosen by the client, every output that
-- the specification asks for returned in one row.
--
-- Isolation. The functions run at READ COMMITTED and are nevertheless isolated from each other as the
-- specification demands (clause 3.4), because
--   * every value that is read and written back is changed by a single UPDATE of a locked row;
--   * what is read without a lock (taxes, discounts, prices, names) never changes after the load;
--   * Order-Status and Stock-Level are single statements, and a statement sees one snapshot;
--   * Delivery locks the oldest new order first and looks again when somebody else delivered it.
-- Rows are locked in one order everywhere: warehouse, district, new order, order, lines, customer; stock
-- rows by (warehouse, item), in which order the client sorts the lines.

-- New-Order (clause 2.4). Lines arrive sorted by (supplying warehouse, item); `line_round` is 1 but for
-- the second (third, ...) line of the same stock row, which is a later round, because one UPDATE can
-- change a row only once. What is returned per line is in the order of `out_line`, the lines' numbers.
-- Raises UL001 after all valid lines were carried out when an item does not exist: the intended rollback
-- of 1 % of the orders.
CREATE FUNCTION tpcc.new_order_transaction(
  IN  in_w_id integer, IN in_d_id integer, IN in_c_id integer,
  IN  line_number smallint[], IN line_item integer[], IN line_supply integer[],
  IN  line_quantity smallint[], IN line_round smallint[],
  OUT out_o_id integer, OUT out_entry_d timestamptz, OUT out_w_tax numeric, OUT out_d_tax numeric,
  OUT out_discount numeric, OUT out_last varchar, OUT out_credit char, OUT out_total numeric,
  OUT out_line smallint[], OUT out_item_name varchar[], OUT out_stock integer[],
  OUT out_brand_generic char[], OUT out_price numeric[], OUT out_amount numeric[])
LANGUAGE plpgsql AS $$
DECLARE
  all_local   smallint := 1;
  rounds      smallint := 1;
  wanted      integer := cardinality(line_item);
  done        integer := 0;
  sum_amount  numeric := 0;
  line        record;
BEGIN
  out_entry_d := clock_timestamp();
  FOR position IN 1..wanted LOOP
    IF line_supply[position] <> in_w_id THEN
      all_local := 0;
    END IF;
    IF line_round[position] > rounds THEN
      rounds := line_round[position];
    END IF;
  END LOOP;

  UPDATE tpcc.district SET d_next_o_id = d_next_o_id + 1
   WHERE d_w_id = in_w_id AND d_id = in_d_id
  RETURNING d_next_o_id - 1, d_tax INTO STRICT out_o_id, out_d_tax;

  SELECT w_tax, c_discount, c_last, c_credit
    INTO STRICT out_w_tax, out_discount, out_last, out_credit
    FROM tpcc.warehouse, tpcc.customer
   WHERE w_id = in_w_id AND c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;

  INSERT INTO tpcc.orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
  VALUES (in_w_id, in_d_id, out_o_id, in_c_id, out_entry_d, NULL, wanted, all_local);

  INSERT INTO tpcc.new_order (no_w_id, no_d_id, no_o_id) VALUES (in_w_id, in_d_id, out_o_id);

  FOR this_round IN 1..rounds LOOP
    WITH supplied AS (
      UPDATE tpcc.stock
         SET s_quantity   = CASE WHEN s_quantity >= quantity + 10 THEN s_quantity - quantity
                                 ELSE s_quantity - quantity + 91 END,
             s_ytd        = s_ytd + quantity,
             s_order_cnt  = s_order_cnt + 1,
             s_remote_cnt = s_remote_cnt + CASE WHEN s_w_id = in_w_id THEN 0 ELSE 1 END
        FROM unnest(line_number, line_item, line_supply, line_quantity, line_round)
               AS l (number, item, supply, quantity, round),
             tpcc.item
       WHERE round = this_round AND i_id = item AND s_w_id = l.supply AND s_i_id = item
      RETURNING number, item, l.supply, quantity, s_quantity, i_name, i_price, i_price * quantity AS amount,
                CASE WHEN i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' THEN 'B' ELSE 'G' END
                  AS brand_generic,
                CASE in_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                             WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                             WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                             ELSE s_dist_10 END AS dist_info
    ), lines AS (
      INSERT INTO tpcc.order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_quantity, ol_i_id,
                                   ol_supply_w_id, ol_delivery_d, ol_amount, ol_dist_info)
      SELECT in_w_id, in_d_id, out_o_id, number, quantity, item, supplied.supply, NULL, amount, dist_info
        FROM supplied
    )
    SELECT count(*) AS lines, sum(amount) AS amount, array_agg(number) AS numbers,
           array_agg(i_name) AS item_name, array_agg(s_quantity) AS stock,
           array_agg(brand_generic) AS brand_generic, array_agg(i_price) AS price,
           array_agg(supplied.amount) AS amounts
      INTO line FROM supplied;
    done := done + line.lines;
    IF line.lines > 0 THEN
      sum_amount := sum_amount + line.amount;
      out_line := out_line || line.numbers;
      out_item_name := out_item_name || line.item_name;
      out_stock := out_stock || line.stock;
      out_brand_generic := out_brand_generic || line.brand_generic;
      out_price := out_price || line.price;
      out_amount := out_amount || line.amounts;
    END IF;
  END LOOP;

  IF done < wanted THEN
    RAISE EXCEPTION 'Item number is not valid' USING ERRCODE = 'UL001';
  END IF;
  out_total := round(sum_amount * (1 - out_discount) * (1 + out_w_tax + out_d_tax), 2);
END $$;

-- Payment (clause 2.5). The customer is named by number, or by last name (then `in_c_id` is null): the
-- customer in the middle, rounded up, of all with that name in the order of their first names.
CREATE FUNCTION tpcc.payment_transaction(
  IN  in_w_id integer, IN in_d_id integer, IN in_c_w_id integer, IN in_c_d_id integer,
  IN  in_c_id integer, IN in_last varchar, IN in_amount numeric,
  OUT out_c_id integer, OUT out_date timestamptz,
  OUT out_w_street_1 varchar, OUT out_w_street_2 varchar, OUT out_w_city varchar,
  OUT out_w_state char, OUT out_w_zip char,
  OUT out_d_street_1 varchar, OUT out_d_street_2 varchar, OUT out_d_city varchar,
  OUT out_d_state char, OUT out_d_zip char,
  OUT out_first varchar, OUT out_middle char, OUT out_last varchar,
  OUT out_c_street_1 varchar, OUT out_c_street_2 varchar, OUT out_c_city varchar,
  OUT out_c_state char, OUT out_c_zip char, OUT out_phone char, OUT out_since timestamptz,
  OUT out_credit char, OUT out_credit_lim numeric, OUT out_discount numeric, OUT out_balance numeric,
  OUT out_data varchar)
LANGUAGE plpgsql AS $$
DECLARE
  warehouse_name varchar;
  district_name  varchar;
BEGIN
  out_date := clock_timestamp();
  out_c_id := in_c_id;
  IF out_c_id IS NULL THEN
    SELECT (array_agg(c_id ORDER BY c_first, c_id))[(count(*) + 1) / 2] INTO out_c_id
      FROM tpcc.customer
     WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_last;
    IF out_c_id IS NULL THEN
      RAISE EXCEPTION 'no customer of warehouse % district % is called %', in_c_w_id, in_c_d_id, in_last
        USING ERRCODE = 'UL002';
    END IF;
  END IF;

  UPDATE tpcc.warehouse SET w_ytd = w_ytd + in_amount
   WHERE w_id = in_w_id
  RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip
    INTO STRICT warehouse_name, out_w_street_1, out_w_street_2, out_w_city, out_w_state, out_w_zip;

  UPDATE tpcc.district SET d_ytd = d_ytd + in_amount
   WHERE d_w_id = in_w_id AND d_id = in_d_id
  RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip
    INTO STRICT district_name, out_d_street_1, out_d_street_2, out_d_city, out_d_state, out_d_zip;

  UPDATE tpcc.customer
     SET c_balance     = c_balance - in_amount,
         c_ytd_payment = c_ytd_payment + in_amount,
         c_payment_cnt = c_payment_cnt + 1,
         c_data        = CASE WHEN c_credit = 'BC'
                              THEN left(concat_ws(' ', c_id, c_d_id, c_w_id, in_d_id, in_w_id, in_amount)
                                        || '|' || c_data, 500)
                              ELSE c_data END
   WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = out_c_id
  RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
            c_credit, c_credit_lim, c_discount, c_balance,
            CASE WHEN c_credit = 'BC' THEN left(c_data, 200) END
    INTO STRICT out_first, out_middle, out_last, out_c_street_1, out_c_street_2, out_c_city, out_c_state,
                out_c_zip, out_phone, out_since, out_credit, out_credit_lim, out_discount, out_balance,
                out_data;

  INSERT INTO tpcc.history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
  VALUES (out_c_id, in_c_d_id, in_c_w_id, in_d_id, in_w_id, out_date, in_amount,
          warehouse_name || '    ' || district_name);
END $$;

-- Order-Status (clause 2.6): one statement, hence one snapshot.
CREATE FUNCTION tpcc.order_status_transaction(
  IN  in_w_id integer, IN in_d_id integer, IN in_c_id integer, IN in_last varchar,
  OUT out_c_id integer, OUT out_first varchar, OUT out_middle char, OUT out_last varchar,
  OUT out_balance numeric, OUT out_o_id integer, OUT out_entry_d timestamptz, OUT out_carrier integer,
  OUT out_item integer[], OUT out_supply integer[], OUT out_quantity smallint[],
  OUT out_amount numeric[], OUT out_delivery_d timestamptz[])
LANGUAGE plpgsql AS $$
BEGIN
  WITH chosen AS (
    SELECT CASE WHEN in_c_id IS NOT NULL THEN in_c_id ELSE (
             SELECT (array_agg(c_id ORDER BY c_first, c_id))[(count(*) + 1) / 2]
               FROM tpcc.customer
              WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_last) END AS id
  )
  SELECT c_id, c_first, c_middle, c_last, c_balance, o_id, o_entry_d, o_carrier_id,
         items, supplies, quantities, amounts, deliveries
    INTO STRICT out_c_id, out_first, out_middle, out_last, out_balance, out_o_id, out_entry_d, out_carrier,
                out_item, out_supply, out_quantity, out_amount, out_delivery_d
    FROM chosen
    JOIN tpcc.customer ON c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = chosen.id
    LEFT JOIN LATERAL (
      SELECT o_id, o_entry_d, o_carrier_id
        FROM tpcc.orders
       WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = chosen.id
       ORDER BY o_id DESC LIMIT 1) AS latest ON true
    LEFT JOIN LATERAL (
      SELECT array_agg(ol_i_id) AS items, array_agg(ol_supply_w_id) AS supplies,
             array_agg(ol_quantity) AS quantities, array_agg(ol_amount) AS amounts,
             array_agg(ol_delivery_d) AS deliveries
        FROM (SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d
                FROM tpcc.order_line
               WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = latest.o_id
               ORDER BY ol_number) AS line) AS lines ON true;
END $$;

-- Delivery (clause 2.7): the oldest new order of each district, in one database transaction. Returns how
-- many districts had none (the specification wants that reported).
CREATE FUNCTION tpcc.delivery_transaction(
  IN in_w_id integer, IN in_carrier integer, OUT out_delivered integer, OUT out_skipped integer)
LANGUAGE plpgsql AS $$
DECLARE
  delivered_at timestamptz := clock_timestamp();
  oldest       integer;
BEGIN
  out_delivered := 0;
  out_skipped := 0;
  FOR district IN 1..10 LOOP
    LOOP
      SELECT no_o_id INTO oldest FROM tpcc.new_order
       WHERE no_w_id = in_w_id AND no_d_id = district
       ORDER BY no_o_id LIMIT 1 FOR UPDATE;
      EXIT WHEN FOUND;
      -- Nothing found means there is none, or that the one we waited for was delivered meanwhile: only
      -- a new snapshot can tell.
      PERFORM 1 FROM tpcc.new_order WHERE no_w_id = in_w_id AND no_d_id = district LIMIT 1;
      IF NOT FOUND THEN
        oldest := NULL;
        EXIT;
      END IF;
    END LOOP;
    IF oldest IS NULL THEN
      out_skipped := out_skipped + 1;
      CONTINUE;
    END IF;
    WITH taken AS (
      DELETE FROM tpcc.new_order WHERE no_w_id = in_w_id AND no_d_id = district AND no_o_id = oldest
    ), carried AS (
      UPDATE tpcc.orders SET o_carrier_id = in_carrier
       WHERE o_w_id = in_w_id AND o_d_id = district AND o_id = oldest
      RETURNING o_c_id
    ), lines AS (
      UPDATE tpcc.order_line SET ol_delivery_d = delivered_at
       WHERE ol_w_id = in_w_id AND ol_d_id = district AND ol_o_id = oldest
      RETURNING ol_amount
    )
    UPDATE tpcc.customer
       SET c_balance = c_balance + (SELECT sum(ol_amount) FROM lines), c_delivery_cnt = c_delivery_cnt + 1
      FROM carried
     WHERE c_w_id = in_w_id AND c_d_id = district AND c_id = carried.o_c_id;
    out_delivered := out_delivered + 1;
  END LOOP;
END $$;

-- Stock-Level (clause 2.8): one statement, hence one snapshot.
CREATE FUNCTION tpcc.stock_level_transaction(
  IN in_w_id integer, IN in_d_id integer, IN in_threshold integer, OUT out_low_stock integer)
LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(DISTINCT ol_i_id) INTO STRICT out_low_stock
    FROM tpcc.district
    JOIN tpcc.order_line ON ol_w_id = in_w_id AND ol_d_id = in_d_id
                        AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id
    JOIN tpcc.stock ON s_w_id = in_w_id AND s_i_id = ol_i_id AND s_quantity < in_threshold
   WHERE d_w_id = in_w_id AND d_id = in_d_id;
END $$;

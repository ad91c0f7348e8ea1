-- The five transactions as procedures: one round trip each, inputs chosen by the client, every output that
-- the specification asks for returned in one row: a few columns, with tabs between the values of a text, because the
-- server describes all columns of a call's result each time. A procedure is separated from the next by a line `$$`.
--
-- Isolation. Sessions run at READ COMMITTED, and the transactions are nevertheless isolated from each other
-- as the specification demands (clause 3.4), because
--   * every value that is read and written back is changed by a single UPDATE of a locked row;
--   * what is read without a lock (taxes, discounts, prices, names) never changes after the load, or is a
--     row that the transaction itself has locked;
--   * Order-Status reads in one snapshot, Stock-Level is a single statement;
--   * Delivery locks the oldest new order first; InnoDB goes on to the next one when the one it waited for
--     was delivered meanwhile.
-- Rows are locked in one order everywhere: warehouse, district, new order, order, lines, customer; stock
-- rows by (warehouse, item), in which order the client sorts the lines.
--
-- A row that must exist and does not raises SQLSTATE UL003. What a transaction changes is read before its COMMIT and sent
-- behind it: the server sends a result and the end of the call by themselves, and a client that got one long before the
-- other would wake up for each.

-- New-Order (clause 2.4). `in_lines` holds the lines, sorted by (supplying warehouse, item), in 20 digits
-- each: number (2), item (6), supplying warehouse (10), quantity (2). A procedure takes no arrays, and
-- cutting a text of fixed places is several times cheaper than parsing JSON. `out_order` has entry date, taxes of
-- warehouse and district, discount, last name, credit, total, and per line: number, item name, stock quantity, brand or
-- generic, price, amount. When an item does not exist, everything is
-- rolled back after all valid lines were carried out, and there is no order number: the intended rollback
-- of 1 % of the orders.
CREATE PROCEDURE new_order_transaction(
  IN in_w_id int, IN in_d_id int, IN in_c_id int,
  IN in_lines varchar(400) CHARACTER SET latin1 COLLATE latin1_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE wanted int DEFAULT length(in_lines) DIV 20;
  DECLARE position, done, order_id, line_number, item, supply, quantity int DEFAULT 0;
  DECLARE all_local smallint DEFAULT 1;
  DECLARE entered datetime DEFAULT now();
  DECLARE warehouse_tax, district_tax, discount decimal(4,4);
  DECLARE last_name varchar(16) CHARACTER SET latin1 COLLATE latin1_bin;
  DECLARE credit char(2) CHARACTER SET latin1 COLLATE latin1_bin;
  DECLARE answer varchar(4000) CHARACTER SET latin1 COLLATE latin1_bin;
  DECLARE EXIT HANDLER FOR NOT FOUND
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'a row of the order''s customer or district is missing';

  WHILE position < wanted DO
    IF substr(in_lines, position * 20 + 9, 10) <> in_w_id THEN
      SET all_local = 0;
    END IF;
    SET position = position + 1;
  END WHILE;

  START TRANSACTION;
  UPDATE district SET d_next_o_id = last_insert_id(d_next_o_id) + 1
   WHERE d_w_id = in_w_id AND d_id = in_d_id;
  IF row_count() <> 1 THEN
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'the order''s district is missing';
  END IF;
  SET order_id = last_insert_id();

  SELECT w_tax, d_tax, c_discount, c_last, c_credit
    INTO warehouse_tax, district_tax, discount, last_name, credit
    FROM warehouse, district, customer
   WHERE w_id = in_w_id AND d_w_id = in_w_id AND d_id = in_d_id
     AND c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;

  INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)
  VALUES (in_w_id, in_d_id, order_id, in_c_id, entered, NULL, wanted, all_local);

  INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (in_w_id, in_d_id, order_id);

  SET position = 0;
  WHILE position < wanted DO
    SET line_number = substr(in_lines, position * 20 + 1, 2);
    SET item = substr(in_lines, position * 20 + 3, 6);
    SET supply = substr(in_lines, position * 20 + 9, 10);
    SET quantity = substr(in_lines, position * 20 + 19, 2);
    UPDATE stock
       SET s_quantity   = CASE WHEN s_quantity >= quantity + 10 THEN s_quantity - quantity
                               ELSE s_quantity - quantity + 91 END,
           s_ytd        = s_ytd + quantity,
           s_order_cnt  = s_order_cnt + 1,
           s_remote_cnt = s_remote_cnt + CASE WHEN supply = in_w_id THEN 0 ELSE 1 END
     WHERE s_w_id = supply AND s_i_id = item;
    IF row_count() = 1 THEN
      INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_quantity, ol_i_id,
                              ol_supply_w_id, ol_delivery_d, ol_amount, ol_dist_info)
      SELECT in_w_id, in_d_id, order_id, line_number, quantity, item, supply, NULL, i_price * quantity,
             CASE in_d_id WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03
                          WHEN 4 THEN s_dist_04 WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06
                          WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08 WHEN 9 THEN s_dist_09
                          ELSE s_dist_10 END
        FROM item, stock
       WHERE i_id = item AND s_w_id = supply AND s_i_id = item;
      SET done = done + row_count();
    END IF;
    SET position = position + 1;
  END WHILE;

  IF done < wanted THEN
    ROLLBACK;
    SELECT NULL AS out_o_id;
  ELSE
    SELECT concat_ws('\t', entered, warehouse_tax, district_tax, discount, last_name, credit,
             round(sum(ol_amount) * (1 - discount) * (1 + warehouse_tax + district_tax), 2),
             group_concat(concat_ws('\t', ol_number, i_name, s_quantity,
                                    CASE WHEN i_data LIKE '%ORIGINAL%' AND s_data LIKE '%ORIGINAL%' THEN 'B'
                                         ELSE 'G' END,
                                    i_price, ol_amount) SEPARATOR '\t'))
      INTO answer
      FROM order_line, item, stock
     WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = order_id
       AND i_id = ol_i_id AND s_w_id = ol_supply_w_id AND s_i_id = ol_i_id;
    COMMIT;
    SELECT order_id AS out_o_id, answer AS out_order;
  END IF;
END
$$
-- Payment (clause 2.5). The customer is named by number, or by last name (then `in_c_id` is null): the
-- customer in the middle, rounded up, of all with that name in the order of their first names. `out_payment` has the
-- customer's number, date, addresses of warehouse and district; first, middle and last name, address, phone, date, credit,
-- limit, discount and balance of the customer; of one with bad credit what is known of him.
CREATE PROCEDURE payment_transaction(
  IN in_w_id int, IN in_d_id int, IN in_c_w_id int, IN in_c_d_id int, IN in_c_id int,
  IN in_last varchar(16) CHARACTER SET latin1 COLLATE latin1_bin, IN in_amount decimal(6,2))
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE customer_id int DEFAULT in_c_id;
  DECLARE namesakes int;
  DECLARE paid datetime DEFAULT now();
  DECLARE answer varchar(1000) CHARACTER SET latin1 COLLATE latin1_bin;
  DECLARE EXIT HANDLER FOR NOT FOUND
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'no customer has this name';

  START TRANSACTION;
  IF customer_id IS NULL THEN
    SELECT count(*) INTO namesakes FROM customer
     WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_last;
    SET namesakes = (namesakes + 1) DIV 2 - 1;
    SELECT c_id INTO customer_id FROM customer
     WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_last
     ORDER BY c_first, c_id LIMIT namesakes, 1;
  END IF;

  UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w_id;
  IF row_count() <> 1 THEN
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'the warehouse is missing';
  END IF;
  UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w_id AND d_id = in_d_id;
  IF row_count() <> 1 THEN
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'the district is missing';
  END IF;
  UPDATE customer
     SET c_balance     = c_balance - in_amount,
         c_ytd_payment = c_ytd_payment + in_amount,
         c_payment_cnt = c_payment_cnt + 1,
         c_data        = CASE WHEN c_credit = 'BC'
                              THEN left(concat(concat_ws(' ', c_id, c_d_id, c_w_id, in_d_id, in_w_id, in_amount),
                                               '|', c_data), 500)
                              ELSE c_data END
   WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = customer_id;
  IF row_count() <> 1 THEN
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'the customer is missing';
  END IF;

  INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
  SELECT customer_id, in_c_d_id, in_c_w_id, in_d_id, in_w_id, paid, in_amount,
         concat(w_name, '    ', d_name)
    FROM warehouse, district
   WHERE w_id = in_w_id AND d_w_id = in_w_id AND d_id = in_d_id;

  SELECT concat_ws('\t', customer_id, paid,
           w_street_1, w_street_2, w_city, w_state, w_zip,
           d_street_1, d_street_2, d_city, d_state, d_zip,
           c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since,
           c_credit, c_credit_lim, c_discount, c_balance,
           CASE WHEN c_credit = 'BC' THEN left(c_data, 200) ELSE '' END)
    INTO answer
    FROM warehouse, district, customer
   WHERE w_id = in_w_id AND d_w_id = in_w_id AND d_id = in_d_id
     AND c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = customer_id;
  COMMIT;
  SELECT answer AS out_payment;
END
$$
-- Order-Status (clause 2.6). `out_status` has number, first, middle and last name and balance of the customer, number,
-- entry date and carrier of the order, and per line: item, supplying warehouse, quantity, amount, delivery date. What
-- there is not is empty.
CREATE PROCEDURE order_status_transaction(
  IN in_w_id int, IN in_d_id int, IN in_c_id int,
  IN in_last varchar(16) CHARACTER SET latin1 COLLATE latin1_bin)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE customer_id int DEFAULT in_c_id;
  DECLARE namesakes, order_id int;
  DECLARE order_lines, answer text CHARACTER SET latin1 COLLATE latin1_bin;
  DECLARE EXIT HANDLER FOR NOT FOUND
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'no customer has this name';

  -- For the next transaction alone: several statements must see one state of the order.
  SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
  START TRANSACTION READ ONLY;
  IF customer_id IS NULL THEN
    SELECT count(*) INTO namesakes FROM customer
     WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_last;
    SET namesakes = (namesakes + 1) DIV 2 - 1;
    SELECT c_id INTO customer_id FROM customer
     WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_last
     ORDER BY c_first, c_id LIMIT namesakes, 1;
  END IF;
  SELECT max(o_id) INTO order_id FROM orders
   WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = customer_id;
  SELECT group_concat(concat_ws('\t', ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
                                coalesce(ol_delivery_d, '')) SEPARATOR '\t')
    INTO order_lines
    FROM order_line
   WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = order_id;
  SELECT concat_ws('\t', c_id, c_first, c_middle, c_last, c_balance, coalesce(o_id, ''), coalesce(o_entry_d, ''),
                   coalesce(o_carrier_id, ''), order_lines)
    INTO answer
    FROM customer
    LEFT JOIN orders ON o_w_id = in_w_id AND o_d_id = in_d_id AND o_id = order_id
   WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = customer_id;
  COMMIT;
  SELECT answer AS out_status;
END
$$
-- Delivery (clause 2.7): the oldest new order of each district, in one database transaction. Returns how
-- many districts had none (the specification wants that reported).
CREATE PROCEDURE delivery_transaction(IN in_w_id int, IN in_carrier int)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE district_id int DEFAULT 1;
  DECLARE delivered, skipped int DEFAULT 0;
  DECLARE oldest, customer_id int;
  DECLARE amount decimal(12,2);
  DECLARE delivered_at datetime DEFAULT now();
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET oldest = NULL;

  START TRANSACTION;
  WHILE district_id <= 10 DO
    SET oldest = NULL;
    SELECT no_o_id INTO oldest FROM new_order
     WHERE no_w_id = in_w_id AND no_d_id = district_id
     ORDER BY no_o_id LIMIT 1 FOR UPDATE;
    IF oldest IS NULL THEN
      SET skipped = skipped + 1;
    ELSE
      DELETE FROM new_order WHERE no_w_id = in_w_id AND no_d_id = district_id AND no_o_id = oldest;
      UPDATE orders SET o_carrier_id = in_carrier
       WHERE o_w_id = in_w_id AND o_d_id = district_id AND o_id = oldest;
      SELECT max(o_c_id) INTO customer_id FROM orders
       WHERE o_w_id = in_w_id AND o_d_id = district_id AND o_id = oldest;
      UPDATE order_line SET ol_delivery_d = delivered_at
       WHERE ol_w_id = in_w_id AND ol_d_id = district_id AND ol_o_id = oldest;
      SELECT sum(ol_amount) INTO amount FROM order_line
       WHERE ol_w_id = in_w_id AND ol_d_id = district_id AND ol_o_id = oldest;
      UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
       WHERE c_w_id = in_w_id AND c_d_id = district_id AND c_id = customer_id;
      IF row_count() <> 1 THEN
        SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'an order or its customer is missing';
      END IF;
      SET delivered = delivered + 1;
    END IF;
    SET district_id = district_id + 1;
  END WHILE;
  COMMIT;
  SELECT delivered AS out_delivered, skipped AS out_skipped;
END
$$
-- Stock-Level (clause 2.8): one statement, hence one snapshot. With a COMMIT of its own, so that the server
-- counts as many as there are transactions.
CREATE PROCEDURE stock_level_transaction(IN in_w_id int, IN in_d_id int, IN in_threshold int)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE low_stock bigint;

  START TRANSACTION READ ONLY;
  SELECT STRAIGHT_JOIN count(DISTINCT ol_i_id) INTO low_stock
    FROM district
    JOIN order_line ON ol_w_id = in_w_id AND ol_d_id = in_d_id
                   AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id
    JOIN stock ON s_w_id = in_w_id AND s_i_id = ol_i_id AND s_quantity < in_threshold
   WHERE d_w_id = in_w_id AND d_id = in_d_id;
  COMMIT;
  SELECT low_stock AS out_low_stock;
END

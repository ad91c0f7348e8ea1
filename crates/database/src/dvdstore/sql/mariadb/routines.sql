-- Buys. `in_lines` holds the lines in 15 digits each: product (10), quantity (5). They come sorted by product, so that
-- everybody locks stock in the same order and nobody waits in a circle; stock is read under the lock that its
-- change needs, so that no sale is lost. At the first line that is not in stock the whole order is rolled back, and
-- there is no number. The answer is sent before the COMMIT, whose own success ends the call: a client that has both
-- knows that the order is committed. Statements are separated by a line `$$`.
CREATE PROCEDURE purchase_transaction(
  IN in_customer int, IN in_net decimal(12,2), IN in_tax decimal(12,2),
  IN in_lines varchar(200) CHARACTER SET latin1 COLLATE latin1_bin)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE wanted int DEFAULT length(in_lines) DIV 15;
  DECLARE position, product, pieces, in_stock, order_number int DEFAULT 0;
  DECLARE is_short boolean DEFAULT false;
  DECLARE today date DEFAULT current_date();
  DECLARE EXIT HANDLER FOR NOT FOUND
    SIGNAL SQLSTATE 'UL003' SET MESSAGE_TEXT = 'a product of the order has no stock row';

  START TRANSACTION;
  INSERT INTO orders (orderdate, customerid, netamount, tax, totalamount)
  VALUES (today, in_customer, in_net, in_tax, in_net + in_tax);
  SET order_number = last_insert_id();

  WHILE position < wanted AND NOT is_short DO
    SET product = substr(in_lines, position * 15 + 1, 10);
    SET pieces = substr(in_lines, position * 15 + 11, 5);
    SET position = position + 1;
    SELECT quan_in_stock INTO in_stock FROM inventory WHERE prod_id = product FOR UPDATE;
    IF in_stock < pieces THEN
      SET is_short = true;
    ELSE
      UPDATE inventory SET quan_in_stock = quan_in_stock - pieces, sales = sales + pieces
       WHERE prod_id = product;
      INSERT INTO orderlines (orderlineid, orderid, prod_id, quantity, orderdate)
      VALUES (position, order_number, product, pieces, today);
      INSERT INTO cust_hist (customerid, orderid, prod_id) VALUES (in_customer, order_number, product);
    END IF;
  END WHILE;

  IF is_short THEN
    ROLLBACK;
    SELECT NULL AS out_orderid;
  ELSE
    SELECT order_number AS out_orderid;
    COMMIT;
  END IF;
END
$$
-- Orders anew what is nearly sold out: up to 250 pieces, of each 10,000th product, which sells ten times as well,
-- 2,500.
CREATE TRIGGER restock BEFORE UPDATE ON inventory FOR EACH ROW
BEGIN
  DECLARE full_stock int DEFAULT CASE WHEN NEW.prod_id % 10000 = 0 THEN 2500 ELSE 250 END;
  IF NEW.quan_in_stock < 3 THEN
    INSERT INTO reorder (prod_id, date_low, quan_low, date_reordered, quan_reordered, date_expected)
    VALUES (NEW.prod_id, current_date(), NEW.quan_in_stock, current_date(), full_stock - NEW.quan_in_stock,
            current_date());
    SET NEW.quan_in_stock = full_stock;
  END IF;
END

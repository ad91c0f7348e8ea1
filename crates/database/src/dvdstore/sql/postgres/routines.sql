-- Buys. Lines come sorted by product, so that everybody locks stock in the same order and nobody waits in a
-- circle; stock is read under the lock that its change needs, so that no sale is lost. Raises UL001 at the first
-- line that is not in stock: the whole order is rolled back.
CREATE FUNCTION dvdstore.purchase(
  in_customer integer, in_net_cents bigint, in_tax_cents bigint,
  line_product integer[], line_quantity integer[])
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  order_number  integer;
  in_stock      integer;
BEGIN
  INSERT INTO dvdstore.orders (orderdate, customerid, netamount, tax, totalamount)
  VALUES (current_date, in_customer, in_net_cents / 100.0, in_tax_cents / 100.0,
          (in_net_cents + in_tax_cents) / 100.0)
  RETURNING orderid INTO order_number;

  FOR position IN 1..cardinality(line_product) LOOP
    SELECT quan_in_stock INTO STRICT in_stock FROM dvdstore.inventory
     WHERE prod_id = line_product[position] FOR UPDATE;
    IF in_stock < line_quantity[position] THEN
      RAISE EXCEPTION 'product % is not in stock', line_product[position] USING ERRCODE = 'UL001';
    END IF;
    UPDATE dvdstore.inventory
       SET quan_in_stock = quan_in_stock - line_quantity[position], sales = sales + line_quantity[position]
     WHERE prod_id = line_product[position];
    INSERT INTO dvdstore.orderlines (orderlineid, orderid, prod_id, quantity, orderdate)
    VALUES (position, order_number, line_product[position], line_quantity[position], current_date);
    INSERT INTO dvdstore.cust_hist (customerid, orderid, prod_id)
    VALUES (in_customer, order_number, line_product[position]);
  END LOOP;
  RETURN order_number;
END $$;

-- Orders anew what is nearly sold out: up to 250 pieces, of each 10,000th product, which sells ten times as well,
-- 2,500.
CREATE FUNCTION dvdstore.restock() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  full_stock integer := CASE WHEN NEW.prod_id % 10000 = 0 THEN 2500 ELSE 250 END;
BEGIN
  IF NEW.quan_in_stock < 3 THEN
    INSERT INTO dvdstore.reorder
      (prod_id, date_low, quan_low, date_reordered, quan_reordered, date_expected)
    VALUES (NEW.prod_id, current_date, NEW.quan_in_stock, current_date, full_stock - NEW.quan_in_stock,
            current_date);
    NEW.quan_in_stock := full_stock;
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER restock BEFORE UPDATE ON dvdstore.inventory
  FOR EACH ROW EXECUTE FUNCTION dvdstore.restock();

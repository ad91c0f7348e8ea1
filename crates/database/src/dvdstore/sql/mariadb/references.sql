ALTER TABLE cust_hist ADD CONSTRAINT cust_hist_customers FOREIGN KEY (customerid) REFERENCES customers (customerid) ON DELETE CASCADE;
ALTER TABLE membership ADD CONSTRAINT membership_customers FOREIGN KEY (customerid) REFERENCES customers (customerid) ON DELETE CASCADE;
ALTER TABLE reviews ADD CONSTRAINT reviews_customers FOREIGN KEY (customerid) REFERENCES customers (customerid) ON DELETE CASCADE;
ALTER TABLE orders ADD CONSTRAINT orders_customers FOREIGN KEY (customerid) REFERENCES customers (customerid) ON DELETE SET NULL;
ALTER TABLE orderlines ADD CONSTRAINT orderlines_orders FOREIGN KEY (orderid) REFERENCES orders (orderid) ON DELETE CASCADE;
ALTER TABLE reviews ADD CONSTRAINT reviews_products FOREIGN KEY (prod_id) REFERENCES products (prod_id) ON DELETE CASCADE;
ALTER TABLE reviews_helpfulness ADD CONSTRAINT reviews_helpfulness_reviews FOREIGN KEY (review_id) REFERENCES reviews (review_id) ON DELETE CASCADE;

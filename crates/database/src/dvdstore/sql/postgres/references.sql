ALTER TABLE dvdstore.cust_hist ADD FOREIGN KEY (customerid) REFERENCES dvdstore.customers ON DELETE CASCADE;
ALTER TABLE dvdstore.membership ADD FOREIGN KEY (customerid) REFERENCES dvdstore.customers ON DELETE CASCADE;
ALTER TABLE dvdstore.reviews ADD FOREIGN KEY (customerid) REFERENCES dvdstore.customers ON DELETE CASCADE;
ALTER TABLE dvdstore.orders ADD FOREIGN KEY (customerid) REFERENCES dvdstore.customers ON DELETE SET NULL;
ALTER TABLE dvdstore.orderlines ADD FOREIGN KEY (orderid) REFERENCES dvdstore.orders ON DELETE CASCADE;
ALTER TABLE dvdstore.reviews ADD FOREIGN KEY (prod_id) REFERENCES dvdstore.products ON DELETE CASCADE;
ALTER TABLE dvdstore.reviews_helpfulness ADD FOREIGN KEY (review_id) REFERENCES dvdstore.reviews ON DELETE CASCADE;

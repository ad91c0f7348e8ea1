ALTER TABLE reviews_helpfulness ADD INDEX reviews_helpfulness_review (review_id, helpfulness), ADD INDEX reviews_helpfulness_customer (customerid);
ALTER TABLE customers ADD UNIQUE INDEX customers_username (username), ADD UNIQUE INDEX customers_login (username, password);
ALTER TABLE products ADD FULLTEXT INDEX products_actor (actor);
ALTER TABLE products ADD FULLTEXT INDEX products_title (title);
ALTER TABLE products ADD INDEX products_category (category), ADD INDEX products_special (special), ADD INDEX products_category_special (category, special), ADD INDEX products_membership_item (membership_item);
ALTER TABLE reviews ADD INDEX reviews_customer (customerid), ADD INDEX reviews_product (prod_id), ADD INDEX reviews_stars (stars), ADD INDEX reviews_product_stars (prod_id, stars);
ALTER TABLE cust_hist ADD INDEX cust_hist_customer (customerid);
ALTER TABLE orders ADD INDEX orders_customer (customerid);
ALTER TABLE reorder ADD INDEX reorder_product (prod_id);

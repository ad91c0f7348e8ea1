-- The two secondary indexes of the specification's access paths. One statement per line: the loader runs
-- them in parallel. Not declared unique, which InnoDB would check with more locks: they end in the key.
ALTER TABLE customer ADD INDEX customer_by_name (c_w_id, c_d_id, c_last, c_first, c_id);
ALTER TABLE orders ADD INDEX orders_by_customer (o_w_id, o_d_id, o_c_id, o_id);

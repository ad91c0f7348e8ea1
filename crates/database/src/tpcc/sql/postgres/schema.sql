-- The nine tables of TPC-C (clause 1.3), without keys: those are made after the load, because building an
-- index over loaded rows is several times faster than maintaining it row by row.
--
-- Choices that the specification leaves open:
--   * Money and rates are exact numerics, as users of the specification expect to find them.
--   * Counters that the specification sizes at four digits (order, payment and delivery counts) are 32-bit
--     integers: hot rows overflow four digits within hours.
--   * Warehouse and district rows change with every payment and new order: a low fill factor leaves room
--     on their page, so that new row versions need no index entries.
--   * There are no foreign keys (a declared deviation): no widely used driver has them, the checks verify
--     what they would enforce, and each would add a lock and a look-up to the measured transactions.
CREATE SCHEMA tpcc;

CREATE TABLE tpcc.warehouse (
  w_id       integer       NOT NULL,
  w_ytd      numeric(12,2) NOT NULL,
  w_tax      numeric(4,4)  NOT NULL,
  w_name     varchar(10)   NOT NULL,
  w_street_1 varchar(20)   NOT NULL,
  w_street_2 varchar(20)   NOT NULL,
  w_city     varchar(20)   NOT NULL,
  w_state    char(2)       NOT NULL,
  w_zip      char(9)       NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE tpcc.district (
  d_w_id      integer       NOT NULL,
  d_id        integer       NOT NULL,
  d_next_o_id integer       NOT NULL,
  d_ytd       numeric(12,2) NOT NULL,
  d_tax       numeric(4,4)  NOT NULL,
  d_name      varchar(10)   NOT NULL,
  d_street_1  varchar(20)   NOT NULL,
  d_street_2  varchar(20)   NOT NULL,
  d_city      varchar(20)   NOT NULL,
  d_state     char(2)       NOT NULL,
  d_zip       char(9)       NOT NULL
) WITH (fillfactor = 20);

CREATE TABLE tpcc.customer (
  c_w_id         integer       NOT NULL,
  c_d_id         integer       NOT NULL,
  c_id           integer       NOT NULL,
  c_payment_cnt  integer       NOT NULL,
  c_delivery_cnt integer       NOT NULL,
  c_since        timestamptz   NOT NULL,
  c_balance      numeric(12,2) NOT NULL,
  c_ytd_payment  numeric(12,2) NOT NULL,
  c_credit_lim   numeric(12,2) NOT NULL,
  c_discount     numeric(4,4)  NOT NULL,
  c_credit       char(2)       NOT NULL,
  c_last         varchar(16)   NOT NULL,
  c_first        varchar(16)   NOT NULL,
  c_middle       char(2)       NOT NULL,
  c_street_1     varchar(20)   NOT NULL,
  c_street_2     varchar(20)   NOT NULL,
  c_city         varchar(20)   NOT NULL,
  c_state        char(2)       NOT NULL,
  c_zip          char(9)       NOT NULL,
  c_phone        char(16)      NOT NULL,
  c_data         varchar(500)  NOT NULL
);

CREATE TABLE tpcc.history (
  h_c_id   integer      NOT NULL,
  h_c_d_id integer      NOT NULL,
  h_c_w_id integer      NOT NULL,
  h_d_id   integer      NOT NULL,
  h_w_id   integer      NOT NULL,
  h_date   timestamptz  NOT NULL,
  h_amount numeric(6,2) NOT NULL,
  h_data   varchar(24)  NOT NULL
);

CREATE TABLE tpcc.orders (
  o_w_id       integer     NOT NULL,
  o_d_id       integer     NOT NULL,
  o_id         integer     NOT NULL,
  o_c_id       integer     NOT NULL,
  o_entry_d    timestamptz NOT NULL,
  o_carrier_id integer,
  o_ol_cnt     smallint    NOT NULL,
  o_all_local  smallint    NOT NULL
);

CREATE TABLE tpcc.new_order (
  no_w_id integer NOT NULL,
  no_d_id integer NOT NULL,
  no_o_id integer NOT NULL
);

CREATE TABLE tpcc.order_line (
  ol_w_id        integer      NOT NULL,
  ol_d_id        integer      NOT NULL,
  ol_o_id        integer      NOT NULL,
  ol_number      smallint     NOT NULL,
  ol_quantity    smallint     NOT NULL,
  ol_i_id        integer      NOT NULL,
  ol_supply_w_id integer      NOT NULL,
  ol_delivery_d  timestamptz,
  ol_amount      numeric(6,2) NOT NULL,
  ol_dist_info   char(24)     NOT NULL
);

CREATE TABLE tpcc.stock (
  s_w_id       integer     NOT NULL,
  s_i_id       integer     NOT NULL,
  s_quantity   integer     NOT NULL,
  s_ytd        integer     NOT NULL,
  s_order_cnt  integer     NOT NULL,
  s_remote_cnt integer     NOT NULL,
  s_dist_01    char(24)    NOT NULL,
  s_dist_02    char(24)    NOT NULL,
  s_dist_03    char(24)    NOT NULL,
  s_dist_04    char(24)    NOT NULL,
  s_dist_05    char(24)    NOT NULL,
  s_dist_06    char(24)    NOT NULL,
  s_dist_07    char(24)    NOT NULL,
  s_dist_08    char(24)    NOT NULL,
  s_dist_09    char(24)    NOT NULL,
  s_dist_10    char(24)    NOT NULL,
  s_data       varchar(50) NOT NULL
);

CREATE TABLE tpcc.item (
  i_id    integer      NOT NULL,
  i_im_id integer      NOT NULL,
  i_price numeric(5,2) NOT NULL,
  i_name  varchar(24)  NOT NULL,
  i_data  varchar(50)  NOT NULL
);

-- The tables, without keys: these come after the rows.
CREATE SCHEMA dvdstore;

CREATE TABLE dvdstore.categories (
  category      smallint NOT NULL,
  categoryname  varchar(50) NOT NULL
);

CREATE TABLE dvdstore.customers (
  customerid            serial NOT NULL,
  firstname             varchar(50) NOT NULL,
  lastname              varchar(50) NOT NULL,
  address1              varchar(50) NOT NULL,
  address2              varchar(50),
  city                  varchar(50) NOT NULL,
  state                 varchar(50),
  zip                   varchar(9),
  country               varchar(50) NOT NULL,
  region                smallint NOT NULL,
  email                 varchar(50),
  phone                 varchar(50),
  creditcardtype        integer NOT NULL,
  creditcard            varchar(50) NOT NULL,
  creditcardexpiration  varchar(50) NOT NULL,
  username              varchar(50) NOT NULL,
  password              varchar(50) NOT NULL,
  age                   smallint,
  income                integer,
  gender                varchar(1)
);

CREATE TABLE dvdstore.membership (
  customerid      integer NOT NULL,
  membershiptype  smallint NOT NULL,
  expiredate      date NOT NULL
);

CREATE TABLE dvdstore.products (
  prod_id          serial NOT NULL,
  category         smallint NOT NULL,
  title            text NOT NULL,
  actor            text NOT NULL,
  price            numeric(12,2) NOT NULL,
  special          smallint,
  common_prod_id   integer NOT NULL,
  membership_item  smallint NOT NULL
);

-- Room for the versions that sales write, so that they stay in their page.
CREATE TABLE dvdstore.inventory (
  prod_id        integer NOT NULL,
  quan_in_stock  integer NOT NULL,
  sales          integer NOT NULL
) WITH (fillfactor = 85);

CREATE TABLE dvdstore.orders (
  orderid      serial NOT NULL,
  orderdate    date NOT NULL,
  customerid   integer,
  netamount    numeric(12,2) NOT NULL,
  tax          numeric(12,2) NOT NULL,
  totalamount  numeric(12,2) NOT NULL
);

CREATE TABLE dvdstore.orderlines (
  orderlineid  smallint NOT NULL,
  orderid      integer NOT NULL,
  prod_id      integer NOT NULL,
  quantity     smallint NOT NULL,
  orderdate    date NOT NULL
);

CREATE TABLE dvdstore.cust_hist (
  customerid  integer NOT NULL,
  orderid     integer NOT NULL,
  prod_id     integer NOT NULL
);

-- date_low: when the stock fell below three, to quan_low; quan_reordered is what was added.
CREATE TABLE dvdstore.reorder (
  prod_id         integer NOT NULL,
  date_low        date NOT NULL,
  quan_low        integer NOT NULL,
  date_reordered  date,
  quan_reordered  integer,
  date_expected   date
);

CREATE TABLE dvdstore.reviews (
  review_id       serial NOT NULL,
  prod_id         integer NOT NULL,
  review_date     date NOT NULL,
  stars           smallint NOT NULL,
  customerid      integer NOT NULL,
  review_summary  text,
  review_text     text
);

CREATE TABLE dvdstore.reviews_helpfulness (
  review_helpfulness_id  serial NOT NULL,
  review_id              integer NOT NULL,
  customerid             integer NOT NULL,
  helpfulness            smallint NOT NULL
);

-- The tables with their primary keys; other keys come after the rows.
CREATE TABLE categories (
  category      smallint NOT NULL,
  categoryname  varchar(50) NOT NULL,
  PRIMARY KEY (category)
) ENGINE=InnoDB;

CREATE TABLE customers (
  customerid            int NOT NULL AUTO_INCREMENT,
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
  creditcardtype        int NOT NULL,
  creditcard            varchar(50) NOT NULL,
  creditcardexpiration  varchar(50) NOT NULL,
  username              varchar(50) NOT NULL,
  password              varchar(50) NOT NULL,
  age                   smallint,
  income                int,
  gender                varchar(1),
  PRIMARY KEY (customerid)
) ENGINE=InnoDB;

CREATE TABLE membership (
  customerid      int NOT NULL,
  membershiptype  smallint NOT NULL,
  expiredate      date NOT NULL,
  PRIMARY KEY (customerid)
) ENGINE=InnoDB;

-- Titles and actors are compared without case: a full-text index keeps words in small letters, and under a binary
-- collation nobody who writes capitals would find them.
CREATE TABLE products (
  prod_id          int NOT NULL AUTO_INCREMENT,
  category         smallint NOT NULL,
  title            text CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL,
  actor            text CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL,
  price            decimal(12,2) NOT NULL,
  special          smallint,
  common_prod_id   int NOT NULL,
  membership_item  smallint NOT NULL,
  PRIMARY KEY (prod_id)
) ENGINE=InnoDB;

CREATE TABLE inventory (
  prod_id        int NOT NULL,
  quan_in_stock  int NOT NULL,
  sales          int NOT NULL,
  PRIMARY KEY (prod_id)
) ENGINE=InnoDB;

CREATE TABLE orders (
  orderid      int NOT NULL AUTO_INCREMENT,
  orderdate    date NOT NULL,
  customerid   int,
  netamount    decimal(12,2) NOT NULL,
  tax          decimal(12,2) NOT NULL,
  totalamount  decimal(12,2) NOT NULL,
  PRIMARY KEY (orderid)
) ENGINE=InnoDB;

CREATE TABLE orderlines (
  orderlineid  smallint NOT NULL,
  orderid      int NOT NULL,
  prod_id      int NOT NULL,
  quantity     smallint NOT NULL,
  orderdate    date NOT NULL,
  PRIMARY KEY (orderid, orderlineid)
) ENGINE=InnoDB;

CREATE TABLE cust_hist (
  customerid  int NOT NULL,
  orderid     int NOT NULL,
  prod_id     int NOT NULL
) ENGINE=InnoDB;

-- date_low: when the stock fell below three, to quan_low; quan_reordered is what was added.
CREATE TABLE reorder (
  prod_id         int NOT NULL,
  date_low        date NOT NULL,
  quan_low        int NOT NULL,
  date_reordered  date,
  quan_reordered  int,
  date_expected   date
) ENGINE=InnoDB;

CREATE TABLE reviews (
  review_id       int NOT NULL AUTO_INCREMENT,
  prod_id         int NOT NULL,
  review_date     date NOT NULL,
  stars           smallint NOT NULL,
  customerid      int NOT NULL,
  review_summary  text,
  review_text     text,
  PRIMARY KEY (review_id)
) ENGINE=InnoDB;

CREATE TABLE reviews_helpfulness (
  review_helpfulness_id  int NOT NULL AUTO_INCREMENT,
  review_id              int NOT NULL,
  customerid             int NOT NULL,
  helpfulness            smallint NOT NULL,
  PRIMARY KEY (review_helpfulness_id)
) ENGINE=InnoDB;

USE shop;
CREATE TABLE orders (
  id INT NOT NULL,
  state VARCHAR(20) NOT NULL,
  version INT UNSIGNED NOT NULL,
  PRIMARY KEY (id)
) ENGINE=NDB;
CREATE TABLE items (
  order_id INT NOT NULL,
  place INT NOT NULL,
  pieces INT NOT NULL,
  version INT UNSIGNED NOT NULL,
  PRIMARY KEY (order_id, place)
) ENGINE=NDB;
CREATE TABLE customers (
  id INT NOT NULL,
  mail VARCHAR(80) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY (mail)
) ENGINE=NDB;
CREATE TABLE notes (
  id INT NOT NULL,
  text TEXT,
  PRIMARY KEY (id)
) ENGINE=NDB;

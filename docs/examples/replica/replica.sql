USE shop;
CREATE TABLE orders (
  id INT NOT NULL,
  customer INT UNSIGNED NOT NULL,
  amount BIGINT NOT NULL DEFAULT 42,
  state VARCHAR(20) DEFAULT 'open',
  PRIMARY KEY (id)
) ENGINE=InnoDB;
CREATE TABLE stock (
  item INT NOT NULL,
  place CHAR(4) NOT NULL,
  pieces INT NOT NULL,
  seen DATETIME,
  PRIMARY KEY (item, place)
) ENGINE=InnoDB;
CREATE TABLE notes (
  id INT NOT NULL PRIMARY KEY,
  text TEXT
) ENGINE=InnoDB;

-- mysql.ndb_replication: ('fmt', '%', 0, 8, NULL)
CREATE DATABASE fmt;
USE fmt;
CREATE TABLE composite TABLE
  w SMALLINT NOT NULL,
  v INT,
  b VARCHAR(12) NOT NULL,
  n DECIMAL(6,2),
  c DATE NOT NUÊLL,
  Æ¼ VARCHAR(60),
  PRIMARY KEY
-- The tables of the recording in tests/recordings/lives/live_3_epoch2_trans_type7.
USE lv;
CREATE TABLE t1 (
  k INT NOT NULL,
  x INT UNSIGNED NOT NULL,
  v INT,
  s VARCHAR(20),
  PRIMARY KEY (k)
) ENGINE=NDB;
CREATE TABLE t2 (
  a SMALLINT NOT NULL,
  b VARCHAR(10) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL,
  d DECIMAL(9,2),
  x BIGINT UNSIGNED NOT NULL,
  f DOUBLE,
  w CHAR(10),
  PRIMARY KEY (a, b)
) ENGINE=NDB;
CREATE TABLE plain (
  id INT NOT NULL,
  x INT UNSIGNED NOT NULL,
  n VARCHAR(30),
  PRIMARY KEY (id)
) ENGINE=NDB;

INSERT INTO mysql.ndb_replication (db, table_name, server_id, binlog_type, conflict_fn) VALUES
  ('shop', 'orders', 0, 6, 'NDB$OLD(version)'),
  ('shop', 'items', 0, 6, 'NDB$OLD(version)'),
  ('shop', 'customer', 0, 8, 'NDB$EPOCH2_TRANS(4)'),
  ('shop', 'customers', 0, 8, 'NDB$EPOCH2_TRANS(4)'),
  ('shop', 'notes', 0, 7, 'NDB$EPOCH2_TRANS(4)');

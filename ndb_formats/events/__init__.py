"""Events of a binlog: one module per kind, bytes to frozen values."""

"""Words and tables that several kinds of results share."""

"""Which conflict functions were in force when binlogs were written: found by trial."""

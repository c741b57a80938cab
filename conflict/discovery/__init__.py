"""
A run from bare binlogs: which servers wrote them, which tables and binlog types they show.
"""

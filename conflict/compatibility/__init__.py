"""
Which conflict function works with which binlog format, before any binlog is read.
"""

"""
What a row change looks like: MySQL binlogs, row images, NDB's update formats.

Bytes to values and back, without pyspark. Only `binlog_reader` opens files.
"""

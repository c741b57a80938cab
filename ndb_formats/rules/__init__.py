"""
Which columns enter a row image: NDB binlog types and `binlog_row_image`.
"""

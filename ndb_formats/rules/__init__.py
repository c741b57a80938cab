"""
Which columns an image carries: by the binlog types of NDB, and by `binlog_row_image` for other engines.

A new binlog type is a row of `update_format.BINLOG_TYPES`; a new value of `binlog_row_image` one of
`row_image_rules`.
"""

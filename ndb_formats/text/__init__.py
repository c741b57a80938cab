"""
Events as text, in the format of mysqlbinlog.

How the values of a type are printed is a row of `value_text.PRINTED`, and how its name is one of
`table_metadata_lines`.
"""

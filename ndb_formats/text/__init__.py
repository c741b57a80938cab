"""
Events as text, with the habits of mysqlbinlog.
"""

"""
What decides: conflict functions as a table, what a server makes of a table, exceptions tables, counters.
"""

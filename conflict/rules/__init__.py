"""
Conflict functions as a table of cells, the setup of tables by a server, exceptions tables, counters.
"""

"""
What a configuration will do, without a server: rules over definitions, rows of ndb_replication and settings.
"""

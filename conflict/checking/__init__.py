"""
What a configuration will do, before any change is made: rules over definitions, rows of ndb_replication and settings.
"""

"""
The text of whole binlogs, as mysqlbinlog prints it, built from columns.

`ndb_formats.text` says what each line looks like, for one event or value at a time.
"""

"""
Column types: one codec each; character sets and collations; the values that have no Python type.

To add a type: write its decoding and encoding in a module here, and add a row to `column_types.COLUMN_TYPES`. It then
works everywhere, as text in Arrow; its SQL name is declared in `events.row_image` and `schema.create_table`.
"""

"""
Definitions of tables, parsed from CREATE TABLE statements; defaults; NDB types; the identity of a row.

A type that MySQL can declare needs its synonyms in `column_definition.CANONICAL_TYPES`, and its zero in
`default_values`.
"""

"""
Tables: from CREATE TABLE text, their keys, their defaults.
"""

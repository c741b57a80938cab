"""
Compiled loops over the bytes of a binlog: arrays in, arrays out, no Python object per event, row or value.

They say *that* something is wrong and where, never *what*: the scalar codecs say that, and theirs is the only wording.
"""

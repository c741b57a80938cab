"""
Binlog events: one module per event, with a frozen class for its value, and functions to decode and encode its body.

To add an event: write its module here, and give it a row in `writing.round_trip._CODECS` if it needs nothing but its
body.
An event that changes how later ones are read needs a case in `selection.decode_event` too.
"""

"""
Binlog files: from row changes, from the events of another file, and in another format.

    event_stream        events to bytes: positions, sizes, checksums
    transaction_buffer  the events of one transaction, until its length is known
    rows_packer         rows to rows events of a limited size
    binlog_writer       row changes to a file, as a server writes it
    rewriting           a file to the same changes in another format
    round_trip          a file to itself, each event decoded and encoded

No module here opens a file: the caller passes the stream to write to.
"""

"""What may go wrong around a command while it works: disks, files that change, signals."""

"""`ndb-conflict` for schedulers that take every exit code but 0 for a failure: a doubtful result is none."""

import sys

from conflict.cli.app import main
from conflict.cli.refusals import ExitCode

try:
    main()
except SystemExit as end:
    failed = end.code in (ExitCode.REFUSED, ExitCode.INTERRUPTED)
    sys.exit(end.code if failed else 0)

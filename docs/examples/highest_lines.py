"""A resolver as a program: of two values, the greater one stays."""

import json
import sys

for line in sys.stdin:
    asked = json.loads(line)
    row, change = asked["row"], asked["change"]
    if not row["exists"]:
        answer = "apply" if asked["operation"] == "write" else "ignore"
    elif asked["operation"] != "delete" and change["new"]["v"] > row["values"]["v"]:
        answer = "apply"
    else:
        answer = {"reject": "ROW_IN_CONFLICT"}
    print(json.dumps(answer), flush=True)

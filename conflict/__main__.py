"""
The command line as a file to run: `python -m conflict`, and what `spark-submit` is given, which wants a `.py` file.
"""

from conflict.cli.app import main

if __name__ == "__main__":
    main()

"""The `streamlog` command as a file for `spark-submit`: `spark-submit …/submit.py run FILE …`.

It lies here and not in `streamlog.spark`, which may not import the command line.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Run as a file, it stands in a folder whose modules (`test`, `new`) would hide others.
    here = Path(__file__).resolve().parent
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != here]
    from streamlog.app.cli import main

    main()

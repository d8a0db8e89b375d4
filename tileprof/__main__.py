"""``python -m tileprof`` is the same as ``tileprof``."""

import sys

from tileprof.cli.main import main

sys.exit(main())

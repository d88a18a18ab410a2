"""Lines that a file for KCachegrind begins with."""

import re

HEADER = re.compile(rb"(version|creator|pid|cmd|part|thread|desc|positions|events?|summary|totals|arch): *(.*)")
TIMEFRAME = b"timeframe (BB):"  # of old versions

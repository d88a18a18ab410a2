"""Statistics: what remains of the steps that were folded while the program ran, and of calls that were too short.

List the sums over what was folded, by location, call path and class of steps; see schema `statistics`.

Spans and statistics together are everything that ran: `strobe sql` sees both as `totals`.
"""

from strobe.model.plugins import Analysis
from strobe.model.schema import STATISTICS

ANALYSIS = Analysis(__name__, "What remains of what was not kept in detail?", needs=("spans",), columns=STATISTICS)

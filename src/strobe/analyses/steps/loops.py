"""Loops: the main loops of every process, one after the other: the phases of a run.

List the loops whose iterations are the steps, by process and in order of time; see schema `loops`.
"""

from strobe.model.plugins import Analysis
from strobe.model.schema import LOOPS

ANALYSIS = Analysis(__name__, "Which loops dominate the run, one after the other?", needs=("spans",), columns=LOOPS)

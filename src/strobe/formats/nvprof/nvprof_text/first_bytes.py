"""How what nvprof prints is recognised."""

import re

METRICS_BYTES = re.compile(
    rb'^(?:"Device","Kernel",|\s*)"?Invocations"?(?:,|\s{2,})"?(?:Metric|Event) Name', re.MULTILINE
)
LAUNCHES_BYTES = re.compile(
    rb'^\s*"?Device"?(?:,|\s{2,})"?Context"?(?:,|\s{2,})"?Stream"?(?:,|\s{2,})"?Kernel\b', re.MULTILINE
)
CPU_BYTES = re.compile(rb"^={8} CPU profiling result \((?:top down|bottom up|flat)\)", re.MULTILINE)
BANNER_BYTES = re.compile(rb"^==(?:\d+|=*)== NVPROF is profiling", re.MULTILINE)
HEADER_BYTES = re.compile(
    rb'^(?:"?Start"?,"?Duration"?,.*"?Name"?|\s*Start\s{2,}Duration\s{2,}.*Name\s*$|'
    rb'\s*(?:"?Type"?[,\s]+)?"?Time\(%\)"?[,\s]+"?Time"?[,\s]+"?Calls)',
    re.MULTILINE,
)

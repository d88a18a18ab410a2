"""Whether training waits for its data, at which stage of the pipeline, and what more workers would gain.

Judge the data pipeline of every rank that trains, or list its stages; means over all steps that are complete.
Kept ones stand for those that are statistics only. A generator or an iterator of the program counts as a loader
without workers.

Verdict: `data processing` (batches are not ready), `data transmission` (they are, but do not reach the GPU in
time), or `neither`. Where the queue between workers and loop is known (strobe recorded the workers) it is
MindInsight's rule: processing if no batch is ready more than 30 % of the times that one is asked for, else
transmission. Elsewhere the wait itself decides. Either counts only from 5 % of the step on (torch-tb-profiler,
XProf): an empty queue that costs nothing is not a bottleneck. `highly` is from 20 % on. The wait is exposed time:
neither the GPU nor calls of its runtime have anything to do.

Prediction: with enough workers, fetching is hidden behind the rest, `best_step_ns` = step - exposed wait: stages
side by side run at the pace of the slowest, max(rest, fetch / workers). Workers also take cores and memory from
the loop: two published pairs of profiles (ResNet-50 with 0 and 4 workers, samples of torch-tb-profiler) gained
62 % and 34 % of that. So `predicted_step_ns` is half-way from the step to the best.
"""

from strobe.model.columns import RANK, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis

ANALYSIS = Analysis(
    __name__,
    "Does training wait for its data, at which stage, and what would more workers gain?",
    options=(one_of("form", "One row per rank, or per stage.", "verdict", "stages", flags=True),),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that trains", extra=True),
        *when(
            Column("verdict", "string", "", "data processing, data transmission, or neither"),
            Column("input_bound", "string", "", "not, moderately (5 % of the step), or highly (20 %)"),
            Column("duration_ns", "int64", "ns", "how long a step takes"),
            Column("wait_ns", "int64", "ns", "of it, waits for the next batch while nothing else happens"),
            Column("wait_share", "float64", "", "the same as a part of the step, 0 to 1"),
            Column("copy_ns", "int64", "ns", "of it, batches are copied to the GPU while that does not compute"),
            Column("copy_share", "float64", "", "the same as a part of the step, 0 to 1"),
            Column("workers", "int64", "", "worker processes of the loader; 0: the loop fetches, null: not recorded"),
            Column("fetch_ns", "int64", "ns", "work of all workers for the batches of a step, null where not recorded"),
            Column("worker_utilisation", "float64", "", "part of the workers' time that they fetch, 0 to 1"),
            Column("batches", "float64", "", "batches a step asks for", extra=True),
            Column("asked", "int64", "", "batches that these steps asked for, null where the queue is unknown"),
            Column("empty", "int64", "", "how often none was ready then, null where the queue is unknown"),
            Column("needed_workers", "int64", "", "least number of workers that keep up, null where fetch is unknown"),
            Column("predicted_step_ns", "int64", "ns", "expected duration of a step with enough workers"),
            Column("best_step_ns", "int64", "ns", "duration if all fetching were hidden"),
            Column("predicted_gain", "float64", "", "part of the step that the prediction saves, 0 to 1"),
            Column("advice", "string", "", "what to do about it"),
            form="verdict",
        ),
        *when(
            Column("stage", "string", "", "fetch, queue, copy, compute, host: in the order that a batch meets them"),
            Column("done_by", "string", "", "who does it"),
            Column("time_ns", "int64", "ns", "time it works in a step, all workers together; null where not recorded"),
            Column("exposed_ns", "int64", "ns", "part of the step that only it accounts for; adds up to the step"),
            Column("share", "float64", "", "exposed_ns as a part of the step, 0 to 1"),
            Column("utilisation", "float64", "", "part of its time that it works (queue: that a batch was ready)"),
            Column("bottleneck", "bool", "", "whether the step goes at the pace of this stage"),
            form="stages",
        ),
    ),
)

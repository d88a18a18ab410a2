"""What steps of serving compute and how fast: prefill and decode, tokens, batch, attention, time to the first token.

Sum the steps that an engine marks (vLLM, SGLang, ATOM, TensorRT-LLM, xDiT) by what their marks hold: requests and
tokens of each, and where the mark has them the lengths of the contexts. Steps are those of `strobe steps`; the class
is what the mark names: prefill computes prompts, decode a token of each request, mixed both; speculative verifies
several guessed tokens of a request, draft makes such guesses, idle computes none. A step lasts until the next one
begins, as everywhere: what is launched between two marks (sampling, copies) belongs to the first.

The GPU time of a step is that in which anything runs that the step launched, whenever it runs: engines launch ahead,
and a step may end on the host long before its kernels begin. Several GPUs of a process add up. Attention, matrix
products and communication are kernels of that type (`strobe kernels --by type`), each kernel counted in full.
Tokens per second are those of the steps that another one follows, over the time from the begin of each to the begin of
the next. Rows of classes are means over the steps that are complete and not part of the warm-up.

By layer: what is launched inside of the modules that a model repeats (the outermost `nn.Module` of which there are
several of one class beside each other); kernels of a graph count where the captured call is in the trace.

By gap: when nothing of what the steps launched runs on a GPU, and what the host does meanwhile on the thread that
launches what comes next, until it has launched it. `between`: the last kernel is of the step before. The causes are
stages of the engine, by its functions and files: scheduler, sampling, tokenising, detokenising, launch (the model
runner, operators and calls outside of the others, and the time from a launch to the begin of the work), wait (calls in
which the host waits for a GPU), other (functions outside of all of these); null where nothing of the host was
recorded. Gaps before the first step are left out.

Without an engine, loops that generate tokens are found by structure, with PyTorch's operators: an iteration looks
tokens up, computes, and chooses the next token of each sequence; with recorded shapes, the first iteration of a
request has more tokens and the others one of each sequence (or, without a cache, one more each time); without shapes,
something is carried on and the median product of the first takes twice as long, or more. Runs with a backward pass
have none. A request is a call of the function that holds such iterations; where none was recorded, shapes show where
one begins. Its first iteration (prefill) begins with the request, the others are decodes. They are numbered on their
own, and are iterations of `strobe steps` only where these are tokens. Tokens are null without shapes.

By latency: the time to the first token, from the begin of a request to the end of its first iteration; the time per
output token, which is the rest of the request by its other iterations; and how many tokens a sequence has in a second
of its request. Iterations that were folded count by their records, requests of which only statistics remain do not.
"""

from strobe.model.columns import RANK, STEP, Column, when
from strobe.model.option import one_of
from strobe.model.plugins import Analysis


def _times(name: str, text: str) -> tuple[Column, ...]:
    ways = (("", "mean"), ("median_", "median"), ("p95_", "95th percentile"))
    return tuple(Column(f"{way}{name}_ns", "int64", "ns", f"{text}; {over} over requests") for way, over in ways)


ANALYSIS = Analysis(
    __name__,
    "What does a serving engine compute in its steps, and how fast is it?",
    needs=("engine",),
    options=(
        one_of(
            "by",
            "One row per class of steps, per step, per layer of the model, per cause of gaps on the GPU, or for the "
            "latency of requests.",
            "class",
            "step",
            "layer",
            "gap",
            "latency",
        ),
    ),
    columns=(
        RANK,
        Column("process", "uint32", "", "process that runs the steps", extra=True),
        *when(STEP, Column("start_ns", "int64", "ns", "begin of the step", extra=True), by="step"),
        *when(
            Column("class", "string", "", "what it computes: prefill, decode, diffusion ..., or the mark's own word"),
            by=("class", "step", "layer", "gap"),
        ),
        *when(Column("steps", "int64", "", "steps that the row is a mean over"), by=("class", "layer", "gap")),
        *when(Column("layer", "string", "", "the module"), by="layer"),
        *when(
            Column("requests", "float64", "", "requests in the batch"),
            Column("prefill_requests", "float64", "", "of them those whose prompt is computed", extra=True),
            Column("tokens", "float64", "", "tokens that are computed, of prompts and of answers"),
            Column("prefill_tokens", "float64", "", "of them those of prompts"),
            Column("context_tokens", "float64", "", "tokens that all requests have by then, together"),
            Column("attention_pairs", "float64", "", "computed tokens times tokens of the context, over requests"),
            Column("duration_ns", "int64", "ns", "how long the step takes on the host"),
            Column("tokens_per_second", "float64", "1/s", "tokens over the time to the next step; null: none follows"),
            by=("class", "step"),
        ),
        *when(
            Column("gpu_ns", "int64", "ns", "time in which anything runs that it launched"),
            Column("gpu_ns_per_token", "float64", "ns", "the same for each token that is computed"),
            Column("kernels", "float64", "", "kernels that it launched"),
            Column("attention_ns", "int64", "ns", "kernels of attention"),
            Column("matrix_product_ns", "int64", "ns", "kernels of matrix products"),
            Column("communication_ns", "int64", "ns", "kernels that communicate"),
            by=("class", "step", "layer"),
        ),
        *when(
            Column("where", "string", "", "between: the last kernel is of the step before; inside: of the same one"),
            Column("cause", "string", "", "what the host does meanwhile, see above; null: not recorded"),
            Column("idle_ns", "int64", "ns", "how long a GPU is idle in a step by it"),
            Column("share", "float64", "", "of the duration of the steps"),
            Column("gaps", "float64", "", "gaps in a step that have it"),
            Column("function", "string", "", "what most of it passes in; null: nothing has 30 % of it"),
            Column("line", "string", "", "where that is"),
            Column("function_share", "float64", "", "part of the time that passes in it, without its callees"),
            by="gap",
        ),
        *when(
            Column("function", "string", "", "whose calls the requests are; null: they begin with their prompts"),
            Column("requests", "int64", "", "requests that were found"),
            Column("output_tokens", "float64", "", "tokens of the answer to a sequence, mean"),
            *_times("time_to_first_token", "from the begin of a request to the end of its first iteration"),
            *_times("time_per_output_token", "of each further token of a request; null: none has any"),
            Column("tokens_per_second", "float64", "1/s", "tokens of one sequence by the time of its request"),
            by="latency",
        ),
    ),
)

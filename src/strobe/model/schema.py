"""Every table of a trace: columns, Arrow types, units, meaning. The one source; docs and the web's types are made
from it.

Times are integer nanoseconds since the trace's zero (`zero_ns` of job.json). Ids are global within a trace unless
noted otherwise. A change here needs an entry in docs/format/CHANGELOG.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from strobe.model.kinds import LOCATION_KINDS

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type by name, the unit of its values ("" where there is none), and what it means.

    `extra` columns are the first to go where a terminal has no room for all. `nullable`: a value may be missing.
    `values` are the only texts that it holds, where these are known. `when`: of an analysis, options and the values of
    each with which its answer has the column; see `model.columns.when`.
    """

    name: str
    type: str
    unit: str
    meaning: str
    extra: bool = False
    nullable: bool = False
    values: tuple[str, ...] = ()
    when: tuple[tuple[str, tuple[str, ...]], ...] = ()


TABLES: dict[str, tuple[Column, ...]] = {}

PROCESSES = TABLES["processes"] = (
    Column("process", "uint32", "", "id: 0 is the process that the user started"),
    Column("pid", "int64", "", "number the operating system gave it"),
    Column("parent_pid", "int64", "", "pid of its parent"),
    Column("main", "bool", "", "whether it is the program the user started"),
    Column("started_ns", "int64", "ns", "when recording began"),
    Column("ended_ns", "int64", "ns", "last moment known to be recorded"),
    Column(
        "end_state",
        "string",
        "",
        "closed (orderly), exited (os._exit), replaced (exec), lost (killed or crashed), left (sampling from outside "
        "ended before the process), cut (the end of its file is damaged or missing), running",
    ),
    Column("exit_code", "int64", "", "exit code of the process, null where unknown", nullable=True),
    Column("argv", "string", "", "command line"),
    Column("host", "string", "", "name of the machine"),
    Column("python", "string", "", "version of its Python"),
    Column("rank", "int64", "", "its rank in MPI_COMM_WORLD, null where it has none", nullable=True),
    Column("name", "string", "", "name that its program gives it (DataLoader worker 0), or empty"),
)

LOCATIONS = TABLES["locations"] = (
    Column("location", "uint32", "", "id of the sequence of events (a thread, a stream)"),
    Column("process", "uint32", "", "process it belongs to"),
    Column("name", "string", "", "name of the thread"),
    Column("thread_id", "int64", "", "number the operating system gave the thread"),
    Column(
        "kind",
        "string",
        "",
        "thread, stream (of a GPU), task (asynchronous, or a profiler's row)",
        values=LOCATION_KINDS,
    ),
    Column(
        "device", "int64", "", "number of the GPU that a stream belongs to, null for others", extra=True, nullable=True
    ),
    Column("span_count", "int64", "", "spans recorded in it"),
    Column("first_ns", "int64", "ns", "start of its first span"),
    Column("last_ns", "int64", "ns", "end of its last span"),
)

TABLES["regions"] = (
    Column("region", "uint32", "", "id"),
    Column("name", "string", "", "name of the function, operator, range"),
    Column("paradigm", "string", "", "who reported it: one of PARADIGMS in model/kinds.py"),
    Column("role", "string", "", "what it is: one of ROLES"),
    Column("group", "string", "", "what it is summed and coloured as: one of GROUPS"),
    Column("file", "string", "", "source file, empty where unknown"),
    Column("line", "uint32", "", "first line of the definition, 0 where unknown"),
    Column("module", "string", "", "module or library"),
)

TABLES["call_paths"] = (
    Column("call_path", "uint32", "", "id of the chain of regions from the root"),
    Column("parent", "uint32", "", "call path without its last region, null at the root"),
    Column("region", "uint32", "", "last region of the chain"),
    Column("depth", "uint16", "", "regions above it: 0 at the root, 65,535 where there are more"),
)

SPANS = TABLES["spans"] = (
    Column("location", "uint32", "", "where it ran"),
    Column("row", "int64", "", "number of the span in its location, in order of start; (location, row) is its id"),
    Column("start_ns", "int64", "ns", "start"),
    Column("duration_ns", "int64", "ns", "end minus start"),
    Column("self_ns", "int64", "ns", "duration without the spans directly inside it, but with what was folded there"),
    Column("region", "uint32", "", "what was executed"),
    Column("call_path", "uint32", "", "its region and all regions around it"),
    Column("depth", "uint16", "", "number of spans around it, 65,535 where there are more"),
    Column("parent", "int64", "", "row of the span directly around it, null at the root"),
    Column("complete", "bool", "", "false where it was still open when recording ended: then it is cut there"),
)

TABLES["metrics"] = (
    Column("metric", "string", "", "name"),
    Column("process", "uint32", "", "process that was measured"),
    Column("location", "uint32", "", "location that was measured, null for the whole process"),
    Column("time_ns", "int64", "ns", "when it was read"),
    Column("value", "float64", "", "reading, in the unit of the column `unit`"),
    Column("unit", "string", "", "unit of the value"),
)

STEPS = TABLES["steps"] = (
    Column("process", "uint32", "", "process that runs the loop", extra=True),
    Column("step", "int64", "", "number of the step in its process, from 0"),
    Column(
        "start_ns", "int64", "ns", "when the program asked for the step's data, or the loop's body began", extra=True
    ),
    Column("duration_ns", "int64", "ns", "until the next step begins, or the loop's body ends"),
    Column("class", "string", "", "path through the loop: train, train+validation, ...; partial if cut off"),
    Column("data_wait_ns", "int64", "ns", "until the batch is at hand: waiting for it, or making it"),
    Column(
        "forward_ns", "int64", "ns", "forward: what leads up to a backward pass; without a backward pass, all operators"
    ),
    Column("backward_ns", "int64", "ns", "backward pass, from its first to its last node"),
    Column(
        "optimizer_ns", "int64", "ns", "optimizer: update and zeroing of gradients, clipping and averages of weights"
    ),
    Column("validation_ns", "int64", "ns", "of a training: data that run forward without a backward pass"),
    Column("rest_ns", "int64", "ns", "everything else; the six parts add up to the duration"),
    Column("steady", "bool", "", "false for the slow steps of the warm-up and for steps that are cut off", extra=True),
    Column("outlier", "bool", "", "takes much longer than its class usually does"),
    Column("cause", "string", "", "of a slow step: the part that exceeds its median the most (its column without _ns)"),
    Column("loop", "uint32", "", "main loop that it is an iteration of, see `loops`: the phase of the run", extra=True),
    Column(
        "detail", "string", "", "all (with its spans), part (with the spans of its end), none (folded into statistics)"
    ),
    Column(
        "drift", "float64", "", "lasting change of its class until then, as a share of its first duration", extra=True
    ),
    Column(
        "events", "uint32", "", "events in which loops are searched, null if it was not recorded as a step", extra=True
    ),
    Column("path_hash", "uint64", "", "equal for the same events in the same order, null if `events` is", extra=True),
)

LOOPS = TABLES["loops"] = (
    Column("process", "uint32", "", "process that runs the loop", extra=True),
    Column("loop", "uint32", "", "number of the loop in its process, in order of time"),
    Column("kind", "string", "", "what marks a step: hint, range, optimizer, zero_grad, data_wait, structure"),
    Column("name", "string", "", "region that marks a step"),
    Column("steps", "int64", "", "steps of the loop"),
    Column("kept_steps", "int64", "", "steps whose spans are in the trace; statistics hold the others"),
    Column("start_ns", "int64", "ns", "when its first step begins", extra=True),
    Column("end_ns", "int64", "ns", "when its last step ends", extra=True),
    Column("accepted_step", "int64", "", "first step after the loop was found during the run, or null", extra=True),
    Column(
        "confidence", "string", "", "how sure we are that this is the loop that matters: high, medium, low", extra=True
    ),
    Column("reason", "string", "", "how it was found", extra=True),
)

STATISTICS = TABLES["statistics"] = (
    Column("location", "uint32", "", "where it ran"),
    Column("call_path", "uint32", "", "what was executed, and all regions around it"),
    Column("class", "string", "", "class of the steps that it ran in, null outside of every step"),
    Column("count", "uint64", "", "executions that were folded; 0 where only what ran directly inside of spans was"),
    Column("total_ns", "int64", "ns", "sum of their durations"),
    Column(
        "self_ns", "int64", "ns", "the same without direct children; below 0 where the spans' own time holds too much"
    ),
    Column("min_ns", "int64", "ns", "shortest, 0 where the count is 0"),
    Column("max_ns", "int64", "ns", "longest"),
    Column("sum_squares", "float64", "ns2", "sum of the squares of the durations", extra=True),
    Column(
        "histogram", "list<uint32>", "", "executions by duration: 64 buckets, bucket i from 2^(i/2) ns on", extra=True
    ),
    Column("short", "bool", "", "left out of steps in detail, by --min-duration; else the whole step was folded"),
)

# Side tables: attributes that only some spans have. (location, row) is the span.
_OF_SPAN = (
    Column("location", "uint32", "", "where the span ran"),
    Column("row", "int64", "", "number of the span in its location"),
)
_OF_GPU = (
    Column("correlation", "int64", "", "number that a call and what it started share"),
    Column("external_id", "int64", "", "number of the operator that was running when it was started"),
    Column("device", "int64", "", "number of the GPU"),
    Column("context", "int64", "", "context of the driver"),
    Column("stream", "int64", "", "stream"),
)

TABLES["kernel_spans"] = (
    *_OF_SPAN,
    *_OF_GPU,
    Column("grid_x", "int64", "", "blocks in x"),
    Column("grid_y", "int64", "", "blocks in y"),
    Column("grid_z", "int64", "", "blocks in z"),
    Column("block_x", "int64", "", "threads of a block in x"),
    Column("block_y", "int64", "", "threads of a block in y"),
    Column("block_z", "int64", "", "threads of a block in z"),
    Column("registers_per_thread", "int64", "", "registers per thread"),
    Column("shared_memory_bytes", "int64", "bytes", "shared memory of a block, static and dynamic"),
    Column("queued_ns", "int64", "ns", "when it was put into the queue, 0 where unknown", extra=True),
    Column("blocks_per_sm", "float64", "", "blocks per multiprocessor", extra=True),
    Column("warps_per_sm", "float64", "", "warps per multiprocessor", extra=True),
    Column("occupancy_percent", "float64", "%", "estimated achieved occupancy"),
    Column("graph", "int64", "", "CUDA graph that it was launched by", extra=True),
    Column("graph_node", "int64", "", "node of that graph", extra=True),
    Column("captured_by", "int64", "", "correlation of the call that put it into that graph", extra=True),
    Column("priority", "int64", "", "priority of its stream", extra=True),
    Column("static_shared_bytes", "int64", "bytes", "shared memory of a block that the code declares", extra=True),
    Column("dynamic_shared_bytes", "int64", "bytes", "shared memory of a block that the launch asked for", extra=True),
    Column("executed_shared_bytes", "int64", "bytes", "shared memory that the driver set aside", extra=True),
    Column("local_bytes_per_thread", "int64", "bytes", "local memory of a thread", extra=True),
    Column("local_bytes", "int64", "bytes", "local memory of all threads", extra=True),
    Column("launch_type", "string", "", "how it was launched: regular, cooperative, ...", extra=True),
    Column("cache_config", "string", "", "what the cache was asked to prefer", extra=True),
    Column("shared_limit", "string", "", "limit of shared memory that was asked for", extra=True),
    Column("launch", "int64", "", "number of the launch in its process", extra=True),
    Column("green_context", "int64", "", "green context of the driver", extra=True),
    Column("short_name", "string", "", "name of the kernel without templates and arguments", extra=True),
    Column("mangled_name", "string", "", "name of the kernel as the linker knows it", extra=True),
)
TABLES["copy_spans"] = (
    *_OF_SPAN,
    *_OF_GPU,
    Column("size_bytes", "int64", "bytes", "bytes copied or set"),
    Column("bandwidth_gb_s", "float64", "GB/s", "bandwidth as the tool gave it"),
    Column("graph", "int64", "", "CUDA graph that it was launched by", extra=True),
    Column("graph_node", "int64", "", "node of that graph", extra=True),
    Column("captured_by", "int64", "", "correlation of the call that put it into that graph", extra=True),
    Column("copy_kind", "string", "", "from where to where: HtoD, DtoH, DtoD, PtoP, ...; null where memory was set"),
    Column("source_kind", "string", "", "memory copied from: Pageable, Pinned, Device, Managed, ...", extra=True),
    Column("destination_kind", "string", "", "memory copied to, or set", extra=True),
    Column("source_device", "int64", "", "number of the GPU copied from", extra=True),
    Column("source_context", "int64", "", "context of the driver copied from", extra=True),
    Column("destination_device", "int64", "", "number of the GPU copied to", extra=True),
    Column("destination_context", "int64", "", "context of the driver copied to", extra=True),
    Column("set_value", "int64", "", "value that memory was set to", extra=True),
    Column("migration_cause", "string", "", "why unified memory moved", extra=True),
    Column("address", "int64", "", "first virtual address, where known", extra=True),
)
TABLES["call_spans"] = (
    *_OF_SPAN,
    *_OF_GPU[:2],
    Column("callback_id", "int64", "", "number of the function in CUPTI", extra=True),
    Column("return_value", "int64", "", "what it returned: 0 is success"),
    Column("nesting_level", "int64", "", "calls of the same library around it", extra=True),
    Column("call_stack", "string", "", "who called it, a line each: outermost first", extra=True),
)
TABLES["operator_spans"] = (
    *_OF_SPAN,
    Column("external_id", "int64", "", "number that kernels refer to it by"),
    Column("record_function_id", "int64", "", "number of the range in PyTorch", extra=True),
    Column("event_index", "int64", "", "number of the event in Kineto", extra=True),
    Column("sequence_number", "int64", "", "what a forward operator and its backward share"),
    Column("forward_thread", "int64", "", "PyTorch's number of the thread that ran the forward operator"),
    Column("shapes", "string", "", "shapes of the inputs, as JSON"),
    Column("types", "string", "", "types of the inputs, as JSON"),
    Column("strides", "string", "", "strides of the inputs, as JSON", extra=True),
    Column("concrete_inputs", "string", "", "values of inputs that are not tensors, as JSON", extra=True),
    Column("module_hierarchy", "string", "", "modules around it", extra=True),
    Column("call_stack", "string", "", "Python call stack as the tool gave it", extra=True),
)
TABLES["sync_spans"] = (
    *_OF_SPAN,
    *_OF_GPU,
    Column("sync_kind", "string", "", "what was waited for: an event, a stream, a context"),
    Column("wait_on_stream", "int64", "", "stream that was waited for"),
    Column("wait_on_correlation", "int64", "", "correlation of the call that recorded the event waited for"),
    Column("wait_on_event", "int64", "", "event that was waited for"),
)
TABLES["collective_spans"] = (
    *_OF_SPAN,
    Column("collective", "string", "", "which collective"),
    Column("dtype", "string", "", "type of an element"),
    Column("in_elements", "int64", "", "elements sent"),
    Column("out_elements", "int64", "", "elements received"),
    Column("group_size", "int64", "", "ranks in the group"),
    Column("group", "string", "", "name of the group"),
    Column("group_description", "string", "", "what the group is for"),
    Column("group_ranks", "string", "", "ranks of the group, as JSON"),
    Column("in_split", "string", "", "elements sent to each rank, as JSON", extra=True),
    Column("out_split", "string", "", "elements received from each rank, as JSON", extra=True),
    Column("rank", "int64", "", "own rank in the group"),
    Column("first_rank", "int64", "", "first rank of the group in the job", extra=True),
    Column("rank_stride", "int64", "", "distance between its ranks in the job", extra=True),
    Column("sequence", "int64", "", "number of the collective in its group"),
    Column("communicator", "string", "", "communicator", extra=True),
    Column("source_rank", "int64", "", "rank that it came from", extra=True),
    Column("destination_rank", "int64", "", "rank that it went to", extra=True),
    Column("root", "int64", "", "rank in the communicator or group that data comes from or goes to, else null"),
    Column("sent_bytes", "int64", "bytes", "bytes that this rank sent (MPI: to all; PyTorch, NCCL: what it puts in)"),
    Column(
        "received_bytes", "int64", "bytes", "bytes that this rank received (MPI: from all; PyTorch, NCCL: what it gets)"
    ),
    Column("request", "int64", "", "number of the request, null for a blocking collective", extra=True),
    Column("pending_ns", "int64", "ns", "from request to completion, null for blocking calls and kernels", extra=True),
    Column("bucket", "int64", "", "number of the bucket of gradients (DDP) in its backward pass, or null", extra=True),
    Column(
        "source_ranks", "string", "", "ranks whose data it takes, of a collective among neighbours, as JSON", extra=True
    ),
)
TABLES["range_spans"] = (
    *_OF_SPAN,
    Column("category", "string", "", "category of the program's own"),
    Column("color", "int64", "", "colour of the program's own: alpha, red, green, blue, a byte each", extra=True),
    Column("payload", "string", "", "number that the program attached, in decimal"),
    Column("payload_type", "string", "", "type of that number", extra=True),
    Column("json", "string", "", "data that the program attached, as JSON", extra=True),
    Column("range_id", "int64", "", "number that its start and end share", extra=True),
    Column("end_thread_id", "int64", "", "thread that ended it, null where the same", extra=True),
)
TABLES["python_spans"] = (
    *_OF_SPAN,
    Column("python_id", "int64", "", "number of the call"),
    Column("python_parent_id", "int64", "", "number of the caller's call"),
    Column("python_module_id", "int64", "", "number of the module object"),
)
TABLES["io_spans"] = (
    *_OF_SPAN,
    Column("operation", "string", "", "what the call does with the file: open, read, write, flush, seek, map, close"),
    Column("file", "string", "", "path of the file; `pipe`, `socket`, ...; null where unknown"),
    Column("descriptor", "int64", "", "number of the open file in its process, null where it could not be opened"),
    Column("size_bytes", "int64", "bytes", "bytes read or written, null where the call failed or moves none"),
    Column("requested_bytes", "int64", "bytes", "bytes that it was to read or write, null where unknown", extra=True),
    Column("offset_bytes", "int64", "bytes", "position in the file after a seek", extra=True),
)
TABLES["arguments"] = (
    *_OF_SPAN,
    Column("key", "string", "", "name of the argument"),
    Column("value", "string", "", "its value, as JSON"),
)
TABLES["allocations"] = (
    Column("location", "uint32", "", "thread that allocated or freed"),
    Column("time_ns", "int64", "ns", "when"),
    Column("address", "int64", "", "address"),
    Column("size_bytes", "int64", "bytes", "bytes allocated, below 0 where freed"),
    Column("total_allocated_bytes", "int64", "bytes", "allocated in all afterwards"),
    Column("total_reserved_bytes", "int64", "bytes", "reserved in all afterwards"),
    Column("device_type", "int64", "", "0 host, 1 GPU (as PyTorch counts)"),
    Column("device", "int64", "", "number of the device, -1 for the host"),
    Column("event_index", "int64", "", "number of the event in Kineto", extra=True),
    Column("context", "int64", "", "context of the driver", extra=True),
    Column("correlation", "int64", "", "number that the call shares", extra=True),
    Column("memory_kind", "string", "", "kind of the memory: Device, Managed, Pinned, ...", extra=True),
    Column("program_counter", "int64", "", "address of the code that allocated or freed", extra=True),
    Column("name", "string", "", "what the program calls the memory", extra=True),
    Column(
        "total_active_bytes", "int64", "bytes", "allocated, or freed but awaited by a stream, afterwards", extra=True
    ),
    Column("largest_free_bytes", "int64", "bytes", "largest free piece of what is reserved, afterwards", extra=True),
)
# Of snapshots of an allocator only: elsewhere, blocks follow from `allocations`.
TABLES["memory_blocks"] = (
    Column("location", "uint32", "", "the memory, or the thread that allocated it"),
    Column("time_ns", "int64", "ns", "when it was allocated; of earlier blocks, when the recording began"),
    Column("duration_ns", "int64", "ns", "until it was freed, null where it was in use at the end"),
    Column("event_index", "int64", "", "number of the event that allocated it, null of what was there before"),
    Column("freed_index", "int64", "", "number of the event that freed it, null where it was in use at the end"),
    Column("address", "int64", "", "address"),
    Column("size_bytes", "int64", "bytes", "bytes that were asked for"),
    Column("device_type", "int64", "", "0 host, 1 GPU (as PyTorch counts)"),
    Column("device", "int64", "", "number of the device, -1 for the host"),
    Column("call_path", "uint32", "", "who allocated it, null where unknown"),
    Column("category", "string", "", "what it is for, where the file has it"),
)
TABLES["samples"] = (
    Column("location", "uint32", "", "thread that was running"),
    Column("time_ns", "int64", "ns", "when"),
    Column("call_stack", "string", "", "what was running, a line each: outermost first; null where it was not unwound"),
    Column("cpu", "int64", "", "processor that it ran on", extra=True),
    Column("state", "string", "", "state of the thread; of recordings: see `strobe samples`"),
    Column("weight", "int64", "", "reading of the counter that triggers samples", extra=True),
    Column("line", "int64", "", "line that was running in the innermost function", extra=True),
    Column("period_ns", "int64", "ns", "time that the sample stands for: since the thread's sample before"),
    Column("cpu_ns", "int64", "ns", "CPU time that the thread took meanwhile"),
)
TABLES["sample_totals"] = (
    Column("location", "uint32", "", "thread that was running"),
    Column("call_stack", "string", "", "what was running, a line each: outermost first"),
    Column("state", "string", "", "state of the thread"),
    Column("samples", "int64", "", "samples of folded steps, which `samples` does not have; equal rows add up"),
    Column("total_ns", "int64", "ns", "time that they stand for"),
    Column("cpu_ns", "int64", "ns", "CPU time that the thread took meanwhile"),
)
TABLES["messages"] = (
    Column("location", "uint32", "", "who sent, received, or accessed the memory of another rank"),
    Column("time_ns", "int64", "ns", "when it was sent (or that began), or had been received"),
    Column(
        "direction",
        "string",
        "",
        "send, receive, probe; of one-sided communication: put, get, atomic; of its epochs: post, start, complete, "
        "wait, lock, shared_lock, unlock",
    ),
    Column("peer_rank", "int64", "", "rank of the other side in MPI_COMM_WORLD"),
    Column("peer", "string", "", "name of the other side's location", extra=True),
    Column("communicator_rank", "int64", "", "rank of the other side in the communicator", extra=True),
    Column("tag", "int64", "", "tag of the message; of epochs and accesses number of the window in its communicator"),
    Column("communicator", "string", "", "name of the communicator"),
    Column("size_bytes", "int64", "bytes", "bytes sent and received; of an atomic operation both ways"),
    Column("request", "int64", "", "number of the request, null for blocking calls", extra=True),
    Column(
        "pending_ns",
        "int64",
        "ns",
        "request to completion; time_ns is the request of a send, the completion of a receive",
    ),
    Column("in_call_ns", "int64", "ns", "in the call (with a request: that completes it), until its completion"),
    Column("call_path", "uint32", "", "that call, and all regions around it", extra=True),
)
# In its columns behind call_path as collective_spans.
TABLES["folded_collectives"] = (
    Column("location", "uint32", "", "thread that took part, or stream that ran the kernel"),
    Column("time_ns", "int64", "ns", "when the call or kernel began (with a request: the call that completes it)"),
    Column("duration_ns", "int64", "ns", "how long it took"),
    Column("call_path", "uint32", "", "the call or kernel, and all regions around it", extra=True),
    *TABLES["collective_spans"][2:],
)
TABLES["message_totals"] = (
    Column("location", "uint32", "", "first location of the process that communicated: rows are about all of it"),
    Column("function", "string", "", "function that was called"),
    Column("communicator", "string", "", "name of the communicator or group, null where rows are for all of them"),
    Column("peer_rank", "int64", "", "rank of the other side in the job, null where there is none"),
    Column("size_bytes", "int64", "bytes", "messages from this size to less than twice as large; null: of any size"),
    Column("calls", "int64", "", "calls; exact, even where spans were folded, throttled or lost"),
    Column("sent_bytes", "int64", "bytes", "bytes that these calls sent"),
    Column("received_bytes", "int64", "bytes", "bytes that these calls received"),
    Column("total_ns", "int64", "ns", "time in these calls"),
    Column("max_ns", "int64", "ns", "longest call, or longest sum of calls that were counted together"),
)
TABLES["marks"] = (
    Column("location", "uint32", "", "where"),
    Column("time_ns", "int64", "ns", "when"),
    Column("name", "string", "", "name"),
    Column("category", "string", "", "category of the file's own"),
    Column("arguments", "string", "", "what else is known, as JSON"),
)
TABLES["flows"] = (
    Column("location", "uint32", "", "where"),
    Column("time_ns", "int64", "ns", "when"),
    Column("flow", "int64", "", "number that the ends of a flow share"),
    Column("flow_name", "string", "", "the same where it is not a number", extra=True),
    Column("phase", "string", "", "s start, t step, f end"),
    Column("name", "string", "", "name"),
    Column("category", "string", "", "what is linked: ac2g (launch to kernel), fwdbwd, ..."),
)
# Profiles without a time axis know more than totals.
TABLES["lines"] = (
    Column("location", "uint32", "", "thread or profile"),
    Column("file", "string", "", "source file"),
    Column("line", "int64", "", "line in it"),
    Column("function", "string", "", "function that the line is in"),
    Column("function_line", "int64", "", "first line of the function, null where unknown", extra=True),
    Column("hits", "int64", "", "how often the line was executed; of a sampled profile, samples in it"),
    Column("total_ns", "int64", "ns", "time in it: with what it calls (line_profiler), in it alone (samples)"),
    Column("gpu_ns", "int64", "ns", "time of GPUs in what was launched meanwhile, null where nobody looked"),
    Column("kernels", "int64", "", "kernels, copies and sets that were launched meanwhile", extra=True),
)
TABLES["call_edges"] = (
    Column("location", "uint32", "", "thread or profile"),
    Column("caller", "string", "", "function that calls"),
    Column("caller_file", "string", "", "source file of the caller"),
    Column("caller_line", "int64", "", "first line of the caller"),
    Column("callee", "string", "", "function that is called"),
    Column("callee_file", "string", "", "source file of the callee"),
    Column("callee_line", "int64", "", "first line of the callee"),
    Column("calls", "int64", "", "calls of the one by the other"),
    Column("primitive_calls", "int64", "", "those that were not recursive"),
    Column("total_ns", "int64", "ns", "time of these calls, with what they call"),
    Column("self_ns", "int64", "ns", "time of these calls in the callee alone"),
)
TABLES["path_metrics"] = (
    Column("location", "uint32", "", "thread or profile"),
    Column("call_path", "uint32", "", "what was executed, and all regions around it"),
    Column("metric", "string", "", "what the profile counts beside time: samples, bytes, visits, ..."),
    Column("unit", "string", "", "unit of the values, as the file names it"),
    Column("self_value", "float64", "", "of the call path alone, in `unit`"),
    Column("total_value", "float64", "", "with everything that it calls, null where it does not add up"),
)
TABLES["io_totals"] = (
    Column("location", "uint32", "", "first location of the process that called: rows are about all of it"),
    Column("function", "string", "", "function that was called: open, read, ..."),
    Column("file", "string", "", "path of the file; `pipe`, `socket`, ...; null where unknown"),
    Column("calls", "int64", "", "calls; exact, even where spans were folded or lost"),
    Column("read_bytes", "int64", "bytes", "bytes that these calls read"),
    Column("written_bytes", "int64", "bytes", "bytes that these calls wrote"),
    Column("total_ns", "int64", "ns", "time in these calls"),
    Column("max_ns", "int64", "ns", "longest call"),
)
TABLES["thread_waits"] = (
    Column("location", "uint32", "", "thread that waited; of team_ states the first one of its team"),
    Column("time_ns", "int64", "ns", "when the wait began, the first one of several"),
    Column(
        "state",
        "string",
        "",
        "see `strobe waits`; of teams of OpenMP: team_regions and team_workers (time of the first thread and of the "
        "others in parallel regions), team_load_balance and team_scheduling (TALP's omp_lb and omp_sched); "
        "team_imbalance and team_serial (thread_barrier and idle_worker if each thread always had a core), team_locks "
        "(of team_imbalance, because the last one had waited for locks), team_starved (time without a core, and "
        "at barriers for threads without one), team_start_and_end (until the last thread of a region begins, and after "
        "it has come to its end); of pthreads: thread_create (location created the thread "
        "cause, which began wait_ns later and ended max_ns later)",
    ),
    Column("call_stack", "string", "", "what waited, a line each: outermost first; of other states region or function"),
    Column("cause", "uint32", "", "location that was waited for; null where unknown"),
    Column("waits", "int64", "", "number of waits, more than one only of short ones that are less than 1 ms apart"),
    Column("wait_ns", "int64", "ns", "all of them together"),
    Column("max_ns", "int64", "ns", "the longest one"),
)
# Of torch.compile. Regions of the calls in `compiled_kernels` have its `kernel`, `file` and `line`.
TABLES["compilations"] = (
    Column("location", "uint32", "", "thread that compiled"),
    Column("time_ns", "int64", "ns", "when it began; of the others, when the compiler noted it"),
    Column(
        "event",
        "string",
        "",
        "compile (one frame, or one backward graph), recompile (a guard failed), graph_break",
        values=("compile", "recompile", "graph_break"),
    ),
    Column("compile_id", "string", "", "PyTorch's number: frame/compilation of the frame"),
    Column("function", "string", "", "function that is compiled, or breaks off"),
    Column("file", "string", "", "source file"),
    Column("line", "int64", "", "first line of the function; of a graph break, the line that causes it"),
    Column("reason", "string", "", "guard that failed, cause of the graph break, why a frame was not compiled"),
    Column("duration_ns", "int64", "ns", "of `compile`, without compilations inside it"),
)
TABLES["compiled_kernels"] = (
    Column("location", "uint32", "", "thread that loaded the generated code"),
    Column("time_ns", "int64", "ns", "when"),
    Column("kernel", "string", "", "kernel or operator that the generated code calls"),
    Column("file", "string", "", "file of the generated code"),
    Column("line", "int64", "", "line of the call in it"),
    Column("operators", "string", "", "ATen operators that it does the work of, a line each"),
    Column("source_lines", "string", "", "lines of the program that it does the work of, FILE:LINE, a line each"),
    Column("shapes", "string", "", "shapes of what these operators make, a line each", extra=True),
    Column("reason", "string", "", "why its source lines are not known, null where they are"),
)
TABLES["requests"] = (
    Column("location", "uint32", "", "row of the timeline that shows it"),
    Column("time_ns", "int64", "ns", "when it arrived"),
    Column("route", "string", "", "method and template of the route, never its values: GET /orders/{order_id}"),
    Column("request", "int64", "", "number in its process"),
    Column("status", "int64", "", "status of the response, null where none was sent"),
    Column("server", "string", "", "who received it: uvicorn, starlette, aiohttp, http.server, asyncio streams"),
    Column("latency_ns", "int64", "ns", "from its arrival until the last byte of the response was given to the socket"),
    Column("start_delay_ns", "int64", "ns", "of it, until its code began"),
    Column(
        "running_ns",
        "int64",
        "ns",
        "of it, while its code ran on the event loop (http.server: CPU time of its thread); null: not known",
    ),
    Column("collecting_ns", "int64", "ns", "of running_ns, while the garbage collector ran"),
)
TABLES["request_parts"] = (
    Column("location", "uint32", "", "row of the timeline that shows the request"),
    Column("time_ns", "int64", "ns", "when the part began"),
    Column("kind", "string", "", "what the request did or waited for: see `strobe requests`"),
    Column("code", "string", "", "function of the program that waited, with its file and line"),
    Column("cause", "string", "", "who kept it waiting, where known"),
    Column("request", "int64", "", "number of the request in its process"),
    Column("thread_id", "int64", "", "number the operating system gave the thread that answers"),
    Column("duration_ns", "int64", "ns", "how long the part lasted, at least 1 ms"),
)
TABLES["quality"] = (
    Column("process", "uint32", "", "process it is about, null where its file cannot be read"),
    Column("pid", "int64", "", "its number in the operating system"),
    Column("what", "string", "", "what was counted, or `ended`, `size_bytes`, ..."),
    Column("value", "int64", "", "number, null where there is only `text`"),
    Column("text", "string", "", "in words"),
)
# Rows of the first kind belong to spans, those of the second have a time of their own, or none.
SPAN_TABLES = tuple(name for name, columns in TABLES.items() if columns[:2] == _OF_SPAN)
EVENT_TABLES = (
    *("allocations", "memory_blocks", "samples", "sample_totals", "messages", "folded_collectives", "message_totals"),
    *("marks", "flows", "lines", "call_edges", "path_metrics", "io_totals", "thread_waits"),
    *("compilations", "compiled_kernels"),
    *("requests", "request_parts"),
)

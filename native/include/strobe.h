// strobe.h - C API of the core. Measured programs written in C or C++ may use it too.
// Every function may be called from any thread at any time; without an active session each is a no-op.
// Nothing here throws, allocates on the hot path, or touches errno.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define STROBE_API __attribute__((visibility("default")))

// Who reported a region. model/kinds.py holds the same list (a test compares them).
enum strobe_paradigm {
  STROBE_OTHER = 0,
  STROBE_PYTHON,
  STROBE_TORCH,
  STROBE_ITT,
  STROBE_NVTX,
  STROBE_USER,
  STROBE_CUDA,
  STROBE_MPI,
  STROBE_ONEDNN,
  STROBE_SELF,
  STROBE_COMPILER,
  STROBE_OPENMP,
  STROBE_PTHREAD,
  STROBE_SHMEM,
  STROBE_OPENACC,
  STROBE_OPENCL,
  STROBE_HIP,
  STROBE_KOKKOS,
  STROBE_ACCELERATOR,
  STROBE_POSIX
};
// What a region is.
enum strobe_role {
  STROBE_ROLE_OTHER = 0,
  STROBE_ROLE_FUNCTION,
  STROBE_ROLE_OPERATOR,
  STROBE_ROLE_RANGE,
  STROBE_ROLE_WAIT,
  STROBE_ROLE_LOOP,
  STROBE_ROLE_KERNEL,
  STROBE_ROLE_COPY,
  STROBE_ROLE_SYNC,
  STROBE_ROLE_P2P,
  STROBE_ROLE_COLLECTIVE,
  STROBE_ROLE_DATA,
  STROBE_ROLE_IDLE,
  STROBE_ROLE_IO
};

typedef struct strobe_region_info {
  const char* name;    // UTF-8; cut at 4096 bytes
  const char* file;    // or NULL
  const char* module;  // or NULL
  uint32_t line;       // 0: unknown
  uint8_t paradigm;
  uint8_t role;
  const char* loops;  // what its loops call (structure/source_loops.h), or NULL
} strobe_region_info;

typedef struct strobe_options {
  const char* folder;          // NAME.strobe/, must exist
  const char* description;     // JSON text stored in the process chunk (argv, python, host, main)
  uint32_t ring_bytes;         // 0: 1 MiB a thread
  uint32_t drain_period_us;    // 0: 10 000
  uint32_t metrics_period_ms;  // 0: 200; UINT32_MAX: none
  const char* counters;        // groups of process metrics with commas, see docs/reference/options.md; NULL: the usual
  uint64_t max_bytes;          // of all block files of the folder together; 0: no limit
  double max_overhead;         // CPU time of the recorder, as a share of the program's; 0: no limit
  uint32_t keep;  // iterations of the main loop to keep in detail; 0: all, nothing is folded; UINT32_MAX: none
  uint64_t throttle_calls;   // a function of Python, C or C++ called so often ... 0: never
  uint64_t throttle_ns;      // ... that takes less than this on average is not recorded any more
  uint64_t min_duration_ns;  // functions that take less are counted and summed up, not kept in detail; 0: all are kept
  uint32_t silent;           // not 0: that recording had to stop is noted in the trace only, not on stderr
  // Where processes of other nodes ask for the time of the trace (core/system/node_clock.h); or NULL.
  const char* clock_server;
  // A flight recorder: the block file is in parts, an eighth of this time or size at most, and whoever started the
  // program removes old ones. 0: the block file is one. The bytes are of all processes of the folder together.
  uint64_t flight_ns;
  uint64_t flight_bytes;
} strobe_options;

// Start recording this process. 0, or an errno value; strobe_error() is then a sentence about what failed.
STROBE_API int strobe_start(const strobe_options* options);
// Start recording this process with the settings that `strobe run` left in the environment, until it ends. 1 where it
// is recorded now, 0 where it is not: it was not started by `strobe run`, or something failed, which is on stderr.
STROBE_API int strobe_begin(void);
// Seal everything, write the end chunk, remove the rings. Safe to call twice.
STROBE_API void strobe_stop(void);
// For a fork whose caller counts threads (CPython 3.12 and later warn of several, once the program's own fork handlers
// have run): pause ends the recorder's own thread, and the first record after resume starts it again. Records wait in
// their rings.
STROBE_API void strobe_pause(void);
STROBE_API void strobe_resume(void);
// Between two recording windows: after mute nothing is recorded and no thread of the recorder runs, until unmute.
STROBE_API void strobe_mute(void);
STROBE_API void strobe_unmute(void);
// Whether what happens now is recorded.
STROBE_API int strobe_active(void);
STROBE_API const char* strobe_error(void);
// What becomes of a record that this thread makes now. STROBE_IN_CHILD: it is recorded, as the first one of a forked
// child, which gets files of its own by it. A thread that is inside of the recorder (a signal's handler has interrupted
// it there) records nothing.
enum { STROBE_NOT_RECORDED = 0, STROBE_RECORDED = 1, STROBE_IN_CHILD = 2 };
STROBE_API int strobe_recorded_here(void);
// From now on the recorder takes no memory from the program's malloc: for hooks in functions that an allocator calls.
STROBE_API void strobe_use_own_memory(void);
// The folder of the trace, "" before the first recording.
STROBE_API const char* strobe_folder(void);
// The process is about to become another user, or to see another root: what it needs in the trace folder is made now.
STROBE_API void strobe_before_user_changes(void);
// Seal everything because the process is about to end by _exit with this code.
STROBE_API void strobe_note_exit(int exit_code);

// Intern a region: the same description gives the same id. 0 is never a valid region; 1 stands for everything after the
// table is full.
STROBE_API uint32_t strobe_region(const strobe_region_info* info);
STROBE_API void strobe_enter(uint32_t region);
STROBE_API void strobe_leave(uint32_t region);
STROBE_API void strobe_name_thread(const char* name);
// The same for a thread that nobody has named so.
STROBE_API void strobe_name_thread_as_system(const char* name);
// What people call this process ("pool worker 3"), where its command line does not show it. The last name counts.
STROBE_API void strobe_name_process(const char* name);
// Record until the process calls its exit handlers, even if somebody who stops earlier (Python's own exit handlers)
// comes first: MPI_Finalize of mpi4py runs after them.
STROBE_API void strobe_stop_at_exit(void);
STROBE_API int strobe_stops_at_exit(void);

// The program goes on with another stack of its own on this thread (a greenlet): what is open ends here, and what was
// open on that stack goes on. 0 is the stack that every thread begins with.
STROBE_API void strobe_switch_stack(uint32_t stack);

// For the hooks that record functions: one byte for each of the first 65 536 regions, not 0 where calls should end. The
// hook stops when no call of it is open, and calls strobe_note_throttled. The place never moves.
STROBE_API const uint8_t* strobe_throttle_flags(void);
STROBE_API void strobe_note_throttled(uint32_t region);
// All calls should end, because they cost more than the recording may: a hook can take itself out then.
STROBE_API int strobe_functions_given_up(void);
// A hook that costs the program `ns` each time that `times` grows by one, whether it records something or not. It
// counts as the recorder's own cost. `times` stays where it is.
STROBE_API void strobe_hook_cost(const uint64_t* times, double ns);
// --- rows: what one event knows beside its time; they become rows of the trace's side tables
// A text of a row (a name, a call stack): the same text gives the same number. NULL and "" give 0.
STROBE_API uint32_t strobe_text(const char* utf8);
// What a row is of. The six values are numbers of 64 bits, or two of 32 bits each: STROBE_TWO(first, second), or three
// of 21 bits: STROBE_THREE(first, second, third); texts fit into them.
// STROBE_NOTHING, STROBE_NOTHING_32 and STROBE_NOTHING_21 stand for an unknown number, 0 for an unknown text.
enum strobe_row_kind {
  // messages: (direction text, communicator text), (peer_rank, communicator_rank), (tag, request), size_bytes, and in
  // ticks until it was complete: in the call that completes it, and since its request. The time of the row is its
  // completion, or with STROBE_ROW_SINCE_BEGIN its request, without one the begin of the call. Such rows stay, whatever
  // comes of the iteration that they are in; the recorder adds the call path of the innermost span.
  STROBE_ROW_MESSAGE = 1,
  // Of a span that is folded, rows of collectives (this kind, 3 and 10) become rows of folded_collectives.
  // collective_spans of MPI: (collective text, communicator text), (root, group_size), sent_bytes, received_bytes,
  // (own rank in the communicator, request), ticks from its request to the time of the row
  STROBE_ROW_COLLECTIVE = 2,
  // collective_spans of torch.distributed and NCCL: (collective text, dtype text, group text), (group_ranks text, root,
  // bucket), (sequence, about text), sent_bytes, received_bytes, pending_ns. The about text has numbers with commas:
  // group_size, group_description text
  STROBE_ROW_GROUP_COLLECTIVE = 3,
  // samples: (location, call_stack text), (state text, cpu), weight, (line, 0), period_ns, cpu_ns
  STROBE_ROW_SAMPLE = 4,
  // call_spans: (correlation, callback_id), (return_value, 0)
  STROBE_ROW_CALL = 5,
  // kernel_spans: (correlation, launch text), (graph, captured_by), graph_node, queued_ns. The launch text has numbers
  // with commas: device, context, stream, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread,
  // shared_memory_bytes, static_shared_bytes, dynamic_shared_bytes, executed_shared_bytes, local_bytes_per_thread,
  // local_bytes, priority, launch_type text, cache_config text; nothing between two commas: not known
  STROBE_ROW_KERNEL = 6,
  // copy_spans: (correlation, copy text), (graph, set_value), graph_node, size_bytes, (captured_by, 0), address. The
  // copy text: device, context, stream, copy_kind text, source_kind text, destination_kind text, source_device,
  // source_context, destination_device, destination_context, migration_cause text
  STROBE_ROW_COPY = 7,
  // allocations: address, size_bytes, total_allocated_bytes, total_reserved_bytes, (correlation, memory text),
  // program_counter. The memory text: device_type, device, context, memory_kind text, name text. Such rows stay,
  // whatever comes of the iteration that they are in: what is in use is the sum of all before.
  STROBE_ROW_ALLOCATION = 8,
  // sync_spans: (correlation, wait text), (wait_on_stream, wait_on_event), (wait_on_correlation, 0). The wait text:
  // device, context, stream, sync_kind text
  STROBE_ROW_SYNC = 9,
  // collective_spans of MPI among neighbours: (collective text, communicator text, source_ranks text), then as
  // STROBE_ROW_COLLECTIVE
  STROBE_ROW_NEIGHBOR_COLLECTIVE = 10,
  // io_spans: (operation text, file text, descriptor), size_bytes, requested_bytes, offset_bytes
  STROBE_ROW_IO = 11,
  // thread_waits: (location, call_stack text), (state text, cause), (waits, 0), wait_ns, max_ns. Such rows stay.
  STROBE_ROW_THREAD_WAIT = 12,
  // compilations: (event text, compile_id text, function text), (file text, reason text), (line, 0), duration_ns. Such
  // rows and the next ones stay.
  STROBE_ROW_COMPILATION = 13,
  // compiled_kernels: (kernel text, file text, operators text), (source_lines text, shapes text, reason text),
  // (line, 0)
  STROBE_ROW_COMPILED_KERNEL = 14,
  // requests, on a task: (route text, request), (status, server text), latency_ns, start_delay_ns, running_ns,
  // collecting_ns. Such rows stay.
  STROBE_ROW_REQUEST = 15,
  // request_parts, on a task: (kind text, code text, cause text), (request, thread_id), duration_ns. Such rows stay.
  STROBE_ROW_REQUEST_PART = 16,
  STROBE_ROW_KINDS = 17,
  STROBE_ROW_SINCE_BEGIN = 0x8000  // added to the kind
};
#define STROBE_ROW_VALUES 6
#define STROBE_NOTHING INT64_MIN
#define STROBE_NOTHING_32 INT32_MIN
#define STROBE_TWO(first, second) ((int64_t)((uint64_t)(uint32_t)(second) << 32 | (uint32_t)(first)))
#define STROBE_NOTHING_21 (-(1 << 20))
#define STROBE_21(number) ((uint64_t)(uint32_t)(number) & 0x1FFFFF)
#define STROBE_THREE(first, second, third) \
  ((int64_t)(STROBE_21(third) << 42 | STROBE_21(second) << 21 | STROBE_21(first)))
// Record a row. One of a table of spans belongs to the innermost span that this thread has open; without any it is
// counted and left out. One of another table has the time of now. A full ring waits for half a second, then counts what
// it loses.
STROBE_API void strobe_row(uint32_t kind, const int64_t values[STROBE_ROW_VALUES]);
// The same at an earlier moment, as strobe_ticks() gave it.
STROBE_API void strobe_row_at(uint32_t kind, uint64_t ticks, const int64_t values[STROBE_ROW_VALUES]);

// For rows about another thread than the one that records them (samples): its location, made if there is none yet.
// `name`: for a thread that has not set one itself, or NULL.
STROBE_API uint32_t strobe_location(uint64_t thread_id, const char* name);
// That thread has ended: its number may come again for another one.
STROBE_API void strobe_location_over(uint64_t thread_id);
// This thread's rows are about others only: it is not itself a location of the trace.
STROBE_API void strobe_hide_thread(void);

// --- streams: locations of a device. What ran there is reported when it is over, some time after it was launched
typedef struct strobe_stream strobe_stream;
typedef struct strobe_stream_span {
  uint32_t region;           // 0: no span, but a row of a table that is not of spans; its time is start_ns
  uint32_t row_kind;         // 0: no row
  int64_t start_ns, end_ns;  // of CLOCK_MONOTONIC
  int64_t launched_ns;       // which iteration it belongs to
  int64_t values[STROBE_ROW_VALUES];
} strobe_stream_span;
// The stream with this number of a device; `name` is what people call it. One thread at a time reports what
// ran on streams. NULL: out of memory. A stream is never closed: the next recording uses it again.
STROBE_API strobe_stream* strobe_stream_open(const char* name, int64_t device, uint64_t number);
// A location beside the streams of a device: what was waited for, its memory. It is reported like them, and is a task
// in the trace, because its time does not belong to the program. No stream has its number.
STROBE_API strobe_stream* strobe_beside_streams_open(const char* name, int64_t device, uint64_t number);
// Reports a span, in order of start. Spans of one stream may overlap, and may come late: they get a location beside it.
// One that begins up to 100 ns before the last one ended begins at that end: clocks are not more exact. 0 where it
// could not be recorded, which is counted.
STROBE_API int strobe_stream_tell(strobe_stream* stream, const strobe_stream_span* span);
// A location of what the program does beside its threads, as ranges that begin on one and end on another: the same
// without a device. One thread at a time reports spans, in whatever order they end. The caller counts what could not be
// recorded.
STROBE_API strobe_stream* strobe_task_open(const char* name, uint64_t number);
// The same for a span of a task and those directly inside of it, which are `count - 1`, lie in it one after the other,
// and have no rows; the row of the first one may be of any table.
STROBE_API int strobe_task_tell(strobe_stream* task, const strobe_stream_span* spans, size_t count);
// Everything that was launched before this moment has been reported (INT64_MAX: nothing will come late, as at the
// beginning). Iterations of the main loop are decided for streams up to there.
STROBE_API void strobe_streams_told(int64_t launched_ns);
// `turn` is called before the recording rests, ends, or ends with the process: what is known must be reported now, and
// nothing is expected afterwards; and when it goes on, or another one begins. Up to four functions; NULL removes all.
enum { STROBE_STREAMS_REST = 0, STROBE_STREAMS_END = 1, STROBE_STREAMS_EXIT = 2, STROBE_STREAMS_GO_ON = 3 };
STROBE_API void strobe_streams_turn_with(void (*turn)(int what));

// --- GPUs, while another profiler of this process has them
// `to` gets the GPUs: what is over by now is reported, and nothing of ours stays enabled in CUPTI. Not from inside of
// CUDA; waits for up to a few seconds. 1: it is done. 0: there was nothing to yield, or it did not end in time.
STROBE_API int strobe_gpu_yield(const char* to);
// It has ended. 1: GPUs are recorded again. 0: they were not yielded, or something failed, which is in the trace.
STROBE_API int strobe_gpu_take_back(void);
STROBE_API int strobe_gpu_recorded(void);  // now, by us
STROBE_API int strobe_gpu_yielded(void);
// A sentence of the trace about the recording of GPUs; the last one about something counts.
STROBE_API void strobe_gpu_say(const char* what, const char* sentence);
typedef struct strobe_gpu_span {
  const char* name;          // of the kernel; "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"
  int64_t start_ns, end_ns;  // of CLOCK_MONOTONIC
  int64_t launched_ns;       // 0: not known
  int64_t size_bytes;        // of a copy or set; -1: not known
  uint32_t device, stream, correlation;
} strobe_gpu_span;
// What it has recorded, in any order, before the GPUs are taken back. Returns how many were new.
STROBE_API uint64_t strobe_gpu_ingest(const strobe_gpu_span* spans, size_t count);

// --- totals of communication and of files, the side tables message_totals and io_totals: exact whatever else is
// folded, throttled or lost
enum { STROBE_TOTAL_OF_FILE = -2 };
typedef struct strobe_total_key {
  uint32_t region;        // the function
  uint32_t communicator;  // text, or 0; of a file its name
  int32_t peer_rank;      // in the job, or STROBE_NOTHING_32
  int32_t size_exponent;  // messages of 2^size_exponent bytes and more, less than twice that; -1: all sizes together;
                          // STROBE_TOTAL_OF_FILE: a row of io_totals
} strobe_total_key;
typedef struct strobe_total_sums {
  uint64_t calls, sent_bytes, received_bytes, ns;
} strobe_total_sums;
STROBE_API void strobe_total(const strobe_total_key* key, const strobe_total_sums* more);

// A number of the program's own over time: the same name and unit give the same metric.
STROBE_API uint32_t strobe_metric(const char* name, const char* unit);
STROBE_API void strobe_sample(uint32_t metric, double value);

// Whether the kernel lets this process count: instructions, cycles, cache-misses or branch-misses, in user mode.
STROBE_API int strobe_hardware_counter(const char* name);
// What this thread has used so far: CPU time in ns, minor and major page faults, voluntary and involuntary context
// switches; with `hardware` the four counters above, of a thread that asks for the first time from now on.
#define STROBE_USAGE_VALUES 9
STROBE_API void strobe_thread_usage(int hardware, uint64_t values[STROBE_USAGE_VALUES]);

// --- counters of source lines, the side table lines: one thread at a time adds to them, as it likes
typedef struct strobe_line {
  uint64_t hits, ticks;
  uint32_t file, function;  // texts
  uint32_t line, function_line;
  uint64_t gpu_ns, kernels;  // of GPUs: what was launched meanwhile; whoever reports streams adds to them
} strobe_line;
// Counters of `count` lines from first_line on, all 0. NULL: nothing is recorded, or there are too many lines. They are
// good while strobe_lines_epoch stays the same: a fork, and the end of the recording, change it.
STROBE_API strobe_line* strobe_lines(const char* file, const char* function, uint32_t function_line,
                                     uint32_t first_line, uint32_t count);
STROBE_API extern uint32_t strobe_lines_epoch;
// Gives the lines that the calling thread is in, each once, `most` at most, and returns how many: of those who count
// lines, for those who want to know who launched something. NULL: nobody counts.
typedef size_t (*strobe_open_lines)(strobe_line** lines, size_t most);
STROBE_API void strobe_lines_open_with(strobe_open_lines ask);

// Count something in the quality table.
STROBE_API void strobe_count(const char* what, uint64_t n);
// For what is known to be worth a record only when it is over (a poll that found something): enter and leave at an
// earlier moment of this thread, as strobe_ticks() gave it, since which nothing was recorded: how much was until now,
// what was lost included.
STROBE_API uint64_t strobe_ticks(void);
// How long one of them is, as measured since the recording began; 1 where nothing is recorded.
STROBE_API double strobe_ns_per_tick(void);
STROBE_API void strobe_enter_at(uint32_t region, uint64_t ticks);
STROBE_API void strobe_leave_at(uint32_t region, uint64_t ticks);
STROBE_API uint64_t strobe_records(void);
// For a thread that waits, and does not notice when what it waits for is over: another one, which does, leaves the
// innermost region of it. Nothing is recorded on the thread meanwhile, and it does not end.
STROBE_API void* strobe_this_thread(void);
STROBE_API void strobe_leave_for(void* thread, uint32_t region, uint64_t ticks);
// This process is number `rank` of the `size` processes of its job. Written at once, so that it survives a kill.
STROBE_API void strobe_note_rank(int rank, int size);
// Where the code is that regions call `site` in their file ("exchange+0x1f"): the path of an object and an address in
// it, so that its source line can be found after the run. Each is written at once, and is to be noted only once.
STROBE_API void strobe_note_call_site(const char* site, const char* object, uint64_t address);

// Entry points found by name: ITT (INTEL_LIBITTNOTIFY64) and NVTX (NVTX_INJECTION64_PATH) load this library themselves.
struct ___itt_global;
STROBE_API void __itt_api_init(struct ___itt_global* global, int groups);
// The same for PyTorch's library that is loaded already and found no collector when it looked for one. 0: it is not
// loaded, has another collector, or is built in a way that we do not know.
STROBE_API int strobe_attach_torch(const char* library);
STROBE_API int InitializeInjectionNvtx2(const void* (*get_export_table)(uint32_t));
STROBE_API int InitializeInjectionNvtxExtension(void* module_info);

#ifdef __cplusplus
}
#endif

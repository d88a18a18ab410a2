#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/strobe.h"
#include "python/calls/code_regions.h"
#include "python/lines/lines_events.h"
#include "python/loops/loop_activations.h"

LoopCode* loop_codes[LOOP_REGIONS];
unsigned loops_recordings;
static PyThreadState* watched;
static Activation activations[MOST_FRAMES]; /* innermost last */
static size_t active;
static uint64_t* hook_calls; /* what an event costs is counted as so many of them */
static double hook_call_ns;
/* A moment of both clocks. */
static uint64_t first_ticks;
static int64_t first_ns;

int64_t loops_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int is_long(uint64_t ticks) {
  const double ns = (double)(loops_now_ns() - first_ns), all = (double)(strobe_ticks() - first_ticks);
  return all <= 0 || (double)ticks * ns / all >= LEAST_NS;
}

static void forget_codes(void) {
  for (size_t i = 0; i < LOOP_REGIONS; i++) {
    if (!loop_codes[i]) continue;
    free(loop_codes[i]->name), free(loop_codes[i]->file), free(loop_codes[i]->text);
    free(loop_codes[i]->hits), free(loop_codes[i]->handlers), free(loop_codes[i]);
    loop_codes[i] = NULL;
  }
}

static void begin(PyThreadState* tstate) {
  watched = tstate;
  loops_recordings++;
  active = 0;
  loops_reset();
}

void loops_start(uint64_t* calls, double call_ns) {
  begin(PyThreadState_Get());
  forget_codes();
  hook_calls = calls, hook_call_ns = call_ns;
  first_ticks = strobe_ticks();
  first_ns = loops_now_ns();
}

void loops_stop(void) {
  if (watched) begin(NULL);
}

int loops_watched(void) { return watched == PyThreadState_Get(); }

void loops_add(PyCodeObject* code, uint32_t region, const char* text) {
  if (!watched || region >= LOOP_REGIONS || loop_codes[region] ||
      code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR))
    return;
  const char *name = PyUnicode_AsUTF8(code->co_qualname), *file = PyUnicode_AsUTF8(code->co_filename);
  const char* last = name ? strrchr(name, '.') : NULL;
  CodeLoop loops[MOST_LOOPS];
  if (!name || !file || strcmp(last ? last + 1 : name, "<listcomp>") == 0) return PyErr_Clear();
  unsigned char* handlers = malloc((size_t)Py_SIZE(code));
  const size_t count = handlers ? loops_in_code(code, loops, MOST_LOOPS, handlers) : 0;
  LoopCode* made = count ? calloc(1, sizeof *made + count * sizeof(Loop)) : NULL;
  if (!made) return free(handlers);
  *made = (LoopCode){.code = code,
                     .name = strdup(name),
                     .file = strdup(file),
                     .text = strdup(text),
                     .count = count,
                     .handlers = handlers};
  for (size_t i = 0; i < count; i++) made->loops[i].at = loops[i];
  loop_codes[region] = made;
#if PY_VERSION_HEX >= 0x030C0000
  made->hits = calloc((size_t)Py_SIZE(code), sizeof *made->hits);
  if (lines_watch((PyObject*)code) != 0) PyErr_Clear();
#endif
}

static uint32_t region_of(const LoopCode* code, Loop* loop) {
  if (loop->region) return loop->region;
  char name[512];
  char text[LOOPS_TEXT + 8];
  snprintf(text, sizeof text, "#%d %s", (int)(loop - code->loops) + 1, code->text);
  const char* file = strrchr(code->file, '/');
  snprintf(name, sizeof name, "loop in %s at %s:%d", code->name, file ? file + 1 : code->file, loop->at.line);
  const strobe_region_info info = {.name = name,
                                   .file = code->file,
                                   .line = (uint32_t)loop->at.line,
                                   .paradigm = STROBE_PYTHON,
                                   .role = STROBE_ROLE_LOOP,
                                   .loops = text}; /* of what lies inside of it as well */
  return loop->region = strobe_region(&info);
}

static void record(const LoopCode* code, Loop* loop, uint64_t begin, uint64_t end) {
  const uint32_t region = region_of(code, loop);
  if (is_throttled(region)) return;
  strobe_enter_at(region, begin);
  strobe_leave_at(region, end);
}

/* The iteration has ended at `now`. What it recorded is in the record; where that is nothing, twice in a row, its loop
 * is recorded from the first of the two on. */
static void end_iteration(const LoopCode* code, Iteration* it, uint64_t now) {
  Loop* loop = it->loop;
  if (it->repeats && it->whole && strobe_records() != it->records) {
    it->own |= strobe_records() != it->seen;
    *(it->own ? &loop->others : &loop->bare) += 1;
  }
  if (it->entered) {
    strobe_leave_at(loop->region, now);
    it->entered = 0;
  } else if (strobe_records() != it->records || !it->whole) {
    it->before = 0;
  } else if (loop->quiet) {
    record(code, loop, it->begin, now);
  } else if (!is_long(now - it->begin)) {
    it->before = 0;
  } else if (!it->before) {
    it->before = it->begin;
    return;
  } else {
    loop->quiet = 1;
    record(code, loop, it->before, it->begin);
    record(code, loop, it->begin, now);
  }
}

/* A span for what an iteration did before the loop in which it does all the rest. */
static void mark(const LoopCode* code, Iteration* it, uint64_t begin, uint64_t end) {
  Loop* loop = it->loop;
  if (it->marked || it->own || !it->whole || loop->quiet || loop->others > loop->bare) return;
  record(code, loop, begin, end);
  it->marked = 1;
}

static void begin_iteration(Iteration* it, uint64_t now) {
  if (strobe_records() != it->records) it->before = 0;
  it->begin = now;
  it->records = it->seen = strobe_records();
  it->repeats = it->marked = it->own = 0;
  it->worked = !it->loop->at.asks;
  it->whole = 1;
}

static void enter(const LoopCode* code, Iteration* it, uint64_t now) {
  if (!it->loop->quiet || it->entered || !it->whole || is_throttled(region_of(code, it->loop))) return;
  strobe_enter_at(it->loop->region, strobe_records() == it->records ? it->begin : now);
  it->entered = 1;
}

static void leave_loop(Activation* at, uint64_t now) {
  Iteration* it = &at->open[--at->depth];
  /* A loop that asks for its next item and gets none has not begun another iteration. */
  if (it->entered || it->worked) end_iteration(at->code, it, now);
  if (it->loop->at.inner && at->depth) at->open[at->depth - 1].seen = strobe_records();
}

static int is_within(const Loop* loop, uint32_t offset) { return offset >= loop->at.begin && offset < loop->at.end; }

void loops_see(Activation* at, uint32_t offset, uint64_t now) {
  LoopCode* code = at->code;
  if (code->handlers[offset / 2]) return;
  while (at->depth && !is_within(at->open[at->depth - 1].loop, offset)) leave_loop(at, now);
  for (size_t i = 0; i < code->count; i++) { /* outer ones first */
    Loop* loop = &code->loops[i];
    if (loop->gone || !is_within(loop, offset)) continue;
    size_t k = 0;
    while (k < at->depth && at->open[k].loop != loop) k++;
    if (k == at->depth) {
      if (at->depth == MOST_NESTED) break;
      if (loop->at.inner && at->depth) {
        Iteration* around = &at->open[at->depth - 1];
        /* What the line of the loop records may be the generator that it goes through. */
        const uint64_t before = loop->at.asks && offset != loop->at.begin ? at->records : strobe_records();
        around->own |= before != around->seen;
        around->repeats = 1;
        /* In the first iteration it is not known yet whether the loop within records anything. */
        if (around->loop->bare) mark(code, around, strobe_records() == around->seen ? around->begin : now, now);
      }
      Iteration* it = &at->open[at->depth++];
      const int asked_again = loop->at.asks && loop->at.one_line && offset == loop->at.begin;
      *it = (Iteration){.loop = loop};
      begin_iteration(it, asked_again ? at->last : now);
      it->whole = at->last != 0;
      it->worked |= asked_again || offset != loop->at.begin;
      if (!asked_again) {
        if (it->worked) enter(code, it, now);
        continue;
      }
    }
    Iteration* it = &at->open[k];
    if (offset == loop->at.begin) {
      end_iteration(code, it, now);
      if (loop->at.inner && k > 0 && strobe_records() != it[-1].seen) mark(code, it - 1, now, now);
      begin_iteration(it, now);
    } else {
      it->worked = 1;
    }
    if (it->worked) enter(code, it, now);
  }
  at->last = now;
  at->records = strobe_records();
}

Activation* loops_push(LoopCode* code, void* frame) {
  if (active == MOST_FRAMES) return NULL;
  Activation* at = &activations[active++];
  code->calls++;
  at->frame = frame, at->code = code;
  at->followed = 1;
  at->since_ns = loops_now_ns();
  at->last = strobe_ticks();
  at->records = strobe_records();
  at->depth = 0;
  return at;
}

Activation* loops_find(const void* frame) {
  for (size_t i = active; i-- > 0;)
    if (activations[i].frame == frame) return &activations[i];
  return NULL;
}

Activation* loops_innermost(void) { return active ? &activations[active - 1] : NULL; }

void loops_pop(const void* frame) {
  Activation* at = loops_find(frame);
  if (!at) return;
  if (at->followed) at->code->watched_ns += loops_now_ns() - at->since_ns;
  loops_leave(at, 0);
  active = (size_t)(at - activations); /* what other stacks of greenlets left above it goes, too */
}

void loops_leave(Activation* at, size_t depth) {
  const uint64_t now = strobe_ticks();
  while (at->depth > depth) leave_loop(at, now);
}

int loops_too_fast(Activation* at) {
  LoopCode* code = at->code;
  if (++code->events % EVENTS_AT_ONCE) return 0;
  const int64_t ns = loops_now_ns();
  code->watched_ns += ns - at->since_ns;
  at->since_ns = ns;
  code->spent_ns += EVENTS_AT_ONCE * EVENT_NS;
  *hook_calls += (uint64_t)(EVENTS_AT_ONCE * EVENT_NS / hook_call_ns);
  return code->spent_ns > MOST_AT_ONCE_NS + code->watched_ns / SHARE || strobe_functions_given_up();
}

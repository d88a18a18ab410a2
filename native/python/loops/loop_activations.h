/* loop_activations.h - calls of code that holds loops, and which of their iterations have begun. */
#pragma once
#include "python/calls/loops_of_code.h"
#include "python/loops/loops.h"

enum {
  MOST_LOOPS = 32,
  MOST_NESTED = 8,
  MOST_FRAMES = 64,
  LEAST_NS = 20000, /* of an iteration, before those of its loop become spans */
  /* What an event costs the program, all instructions of its line included, and what all of them may cost at once and
   * as a share of the time: one in so many. */
  EVENT_NS = 150,
  MOST_AT_ONCE_NS = 250000,
  SHARE = 50,
  EVENTS_AT_ONCE = 64 /* after so many it is looked at what they cost */
};

typedef struct {
  CodeLoop at;
  uint32_t region; /* of its iterations; 0: none has been recorded */
  int quiet;       /* two iterations in a row recorded nothing */
  int gone;        /* its lines come too often: it is not followed any more */
  /* Iterations that recorded nothing but in an inner loop, and the others. */
  uint32_t bare, others;
} Loop;

struct LoopCode {
  PyCodeObject* code; /* compared, never followed: it may be gone */
  char *name, *file, *text;
  uint64_t calls, events;
  int64_t spent_ns, watched_ns;
  int64_t retry_ns;        /* 3.11: until it is followed again; 0: it has not been too fast */
  uint32_t* hits;          /* 3.12 and later: of lines, by the code unit where they begin */
  unsigned char* handlers; /* by code unit: whether an exception is handled there */
  size_t count;
  Loop loops[];
};

/* An iteration that has begun. */
typedef struct {
  Loop* loop;
  uint64_t begin, before; /* ticks; of the iteration before, which recorded nothing either; 0: there is none */
  uint64_t records;       /* of this thread, until then */
  int entered;            /* its span is open */
  int worked;             /* more of it than its beginning was seen */
  int whole;              /* its beginning was seen */
  int repeats;            /* it has come to an inner loop ... */
  int marked;             /* ... and a span stands for what it did before */
  int own;                /* it recorded something outside of such a loop */
  uint64_t seen;          /* records of this thread when the innermost such loop was left */
} Iteration;

typedef struct {
  void* frame;
  LoopCode* code;
  int followed;
  int64_t since_ns;
  uint64_t last, records; /* ticks, and records of this thread, when the line before began */
  size_t depth;
  Iteration open[MOST_NESTED];
} Activation;

/* Whether the calling thread is the one whose loops are watched. */
int loops_watched(void);
/* Grows when a recording begins or ends: what was pushed before has gone. */
extern unsigned loops_recordings;
/* A call begins; NULL where too many are open. */
Activation* loops_push(LoopCode* code, void* frame);
/* Of this frame, or the innermost one; NULL: there is none. */
Activation* loops_find(const void* frame);
Activation* loops_innermost(void);
/* The call of this frame has ended, and those that were open in it. */
void loops_pop(const void* frame);
/* A line begins, at an offset in bytes. */
void loops_see(Activation* activation, uint32_t offset, uint64_t ticks);
/* All loops but so many outer ones are left. */
void loops_leave(Activation* activation, size_t depth);
/* Counts a line. Whether those of this code cost too much. */
int loops_too_fast(Activation* activation);
int64_t loops_now_ns(void); /* CLOCK_MONOTONIC */
/* By version: a recording begins or ends. */
void loops_reset(void);

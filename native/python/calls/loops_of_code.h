/* loops_of_code.h - what the loops of a function call by name, and where a generator yields, read from its bytecode:
 * which of two calls is done every so often, and which loop lies in which, cannot be known from the calls alone. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* A text that native/structure/source_loops.h reads: the names that are called, in order of the source; a loop in
 * parentheses; `?` behind what is not done in every iteration of its loop (or call of the function). Of
 *
 *     for n in range(steps):
 *         advance(state)
 *         if n % 10 == 0:
 *             for name in fields: comm.Gather(state[name])
 *         swap(u); swap(v)
 *
 * it is "range (advance (comm.Gather)? swap swap)". `!` stands first in a loop within another one that only repeats
 * what it does, as nothing asks for its variable: `for _ in range(substeps)`; `^` in one that goes through what the
 * item of the other one holds: `for path in paths: for row in read(path)`; `~` in a `while` loop. In a generator
 * `yield` and `yield-from`, which no name can be, stand among the names, and `await` in a coroutine. Returns it in
 * `text`, empty where there is neither a loop nor a yield, or memory is short; `?` alone where it has no room. No
 * Python exception is left. */
enum { LOOPS_TEXT = 2048 }; /* bytes of a text at most */
void loops_of_code(PyCodeObject* code, char* text, size_t size);

typedef struct {
  uint32_t begin, end; /* in bytes of the bytecode: each iteration begins there; what lies behind the loop */
  int line;            /* where it is written */
  int asks;            /* its iterations begin with the question for the next item, or whether it goes on */
  int one_line;
  int inner; /* `!` or `^` stands in it: it lies in another loop, which does not go through epochs */
} CodeLoop;
/* The loops of a function, outer ones first, `most` at most: how many. `handlers`: by code unit, 1 where an exception
 * is handled; that may belong to a loop before it. No Python exception is left. */
size_t loops_in_code(PyCodeObject* code, CodeLoop* loops, size_t most, unsigned char* handlers);

/* An instruction that may run C code for long. */
typedef struct {
  uint32_t begin, end; /* in code units */
  const char* name;    /* of what it calls; NULL: it has none ... */
  int attribute;       /* ... and it is an attribute of something */
  int contains;        /* it looks whether one thing contains another */
} CodeCall;
/* Calls `use` for each of them, in order. No Python exception is left. */
void calls_in_code(PyCodeObject* code, void (*use)(void* argument, const CodeCall* call), void* argument);

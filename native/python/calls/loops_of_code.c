#include "python/calls/loops_of_code.h"

#include <opcode.h>
#include <string.h>

typedef struct {
  Py_ssize_t at, next; /* in code units */
  int op, arg;
  Py_ssize_t target;         /* of a jump, -1 for all others */
  const char* name;          /* that is loaded, or NULL */
  int called;                /* it is loaded to be called ... */
  const char* object;        /* ... as a method of this one; empty: of one without a name; NULL: it is no method */
  const char *stored, *also; /* the variables that it sets, or NULL */
} Instruction;

typedef struct {
  Py_ssize_t begin, end; /* the first unit, and the one behind the last */
  int items;             /* it is a `for` ... */
  const char* variable;  /* ... that sets this variable to each item, or NULL */
  int repeats, unpacks;  /* see CodeLoop */
} Loop;

enum { MOST_UNITS = 1 << 13, MOST_DEPTH = 64 };
#ifdef TO_BOOL
enum { CHECKED = TO_BOOL };
#else
enum { CHECKED = -1 };
#endif

static int jumps_back(int op) {
  switch (op) {
    case JUMP_BACKWARD:
#if PY_VERSION_HEX < 0x030C0000
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
#endif
      return 1;
    default:
      return 0;
  }
}

static int jumps_forward(int op) {
  switch (op) {
    case JUMP_FORWARD:
    case FOR_ITER:
#if PY_VERSION_HEX < 0x030C0000
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case JUMP_IF_TRUE_OR_POP:
    case JUMP_IF_FALSE_OR_POP:
#else
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
#endif
      return 1;
    default:
      return 0;
  }
}

static const char* text_at(PyObject* names, int at) {
  if (!names || at < 0 || at >= PyTuple_GET_SIZE(names)) return NULL;
  return PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, at));
}

/* What an instruction loads. `pushed`: the stack holds the NULL that marks a call, or gets it by the next one. */
static void find_name(const PyCodeObject* code, Instruction* before, int pushed, Instruction* i) {
  i->name = i->object = i->stored = i->also = NULL;
  i->called = pushed;
  switch (i->op) {
    case STORE_FAST:
    case STORE_DEREF:
      i->called = 0;
      i->stored = text_at(code->co_localsplusnames, i->arg);
      return;
    case STORE_NAME:
    case STORE_GLOBAL:
      i->called = 0;
      i->stored = text_at(code->co_names, i->arg);
      return;
#ifdef STORE_FAST_LOAD_FAST
    case STORE_FAST_LOAD_FAST:
      i->called = 0;
      i->stored = text_at(code->co_localsplusnames, i->arg >> 4);
      return;
#endif
#ifdef STORE_FAST_STORE_FAST
    case STORE_FAST_STORE_FAST:
      i->called = 0;
      i->stored = text_at(code->co_localsplusnames, i->arg >> 4);
      i->also = text_at(code->co_localsplusnames, i->arg & 15);
      return;
#endif
    case LOAD_GLOBAL:
      i->called |= i->arg & 1;
      i->name = text_at(code->co_names, i->arg >> 1);
      return;
    case LOAD_NAME:
      i->name = text_at(code->co_names, i->arg);
      return;
    case LOAD_FAST:
#ifdef LOAD_FAST_BORROW
    case LOAD_FAST_BORROW:
#endif
    case LOAD_DEREF:
      i->name = text_at(code->co_localsplusnames, i->arg);
      return;
#ifdef LOAD_FAST_LOAD_FAST
    case LOAD_FAST_LOAD_FAST:
#ifdef LOAD_FAST_BORROW
    case LOAD_FAST_BORROW_LOAD_FAST_BORROW:
#endif
      i->name = text_at(code->co_localsplusnames, i->arg & 15); /* the upper one on the stack */
      return;
#endif
#if PY_VERSION_HEX < 0x030C0000
    case LOAD_METHOD:
      i->called = 1;
      i->name = text_at(code->co_names, i->arg);
      break;
    case LOAD_ATTR:
      i->name = text_at(code->co_names, i->arg);
      break;
#else
    case LOAD_ATTR:
      i->called |= i->arg & 1;
      i->name = text_at(code->co_names, i->arg >> 1);
      break;
    case LOAD_SUPER_ATTR:
      i->called |= i->arg & 1;
      i->name = text_at(code->co_names, i->arg >> 2);
      break;
#endif
    default:
      i->called = 0;
      return;
  }
  i->object = before && before->name ? before->name : "";
  if (i->op == LOAD_ATTR && before && before->called) { /* it is an attribute that is called */
    i->called = 1;
    before->called = 0;
  }
}

/* Whether the instruction behind `at` needs a NULL that marks no call: CALL_FUNCTION_EX without keywords (3.14), and
 * FOR_ITER, behind the generator that any() or list() goes through (3.15). */
static int is_filler(const unsigned char* units, Py_ssize_t count, Py_ssize_t at) {
  const int next = PY_VERSION_HEX >= 0x030E0000 && at < count ? units[2 * at] : CACHE;
  return next == CALL_FUNCTION_EX || next == FOR_ITER;
}

/* Instructions but those of exception handlers: what they do is done rarely. */
static size_t decode(const PyCodeObject* code, const unsigned char* units, Py_ssize_t count, Instruction* out) {
  size_t n = 0;
  int extended = 0, pushed = 0;
  for (Py_ssize_t at = 0; at < count;) {
    const unsigned char* unit = units + 2 * at;
    Instruction* i = out + n;
    if (!extended) i->at = at;
    at++;
    i->op = unit[0];
    i->arg = extended | unit[1];
    while (at < count && units[2 * at] == CACHE) at++;
    if (i->op == EXTENDED_ARG) {
      extended = i->arg << 8;
      continue;
    }
    extended = 0;
    if (i->op == PUSH_EXC_INFO) { /* where what has run before goes on behind it */
      Py_ssize_t behind = count;
      for (size_t k = 0; k < n; k++)
        if (out[k].target >= at && out[k].target < behind) behind = out[k].target;
      at = behind;
      continue;
    }
    i->next = at;
    i->target = jumps_back(i->op) ? at - i->arg : jumps_forward(i->op) ? at + i->arg : -1;
#ifdef CLEANUP_THROW /* the handler of a `yield from` (or an `await`) goes back behind it: that is not a loop */
    if (n && i[-1].op == CLEANUP_THROW) i->target = -1;
#endif
    if (i->op == PUSH_NULL && is_filler(units, count, at)) i->op = NOP;
    const int marked =
        PY_VERSION_HEX >= 0x030D0000 && at < count && units[2 * at] == PUSH_NULL && !is_filler(units, count, at + 1);
    find_name(code, n ? i - 1 : NULL, pushed || marked, i);
    pushed = i->op == PUSH_NULL && PY_VERSION_HEX < 0x030D0000;
    n++;
  }
  return n;
}

static int is_set(const Instruction* by, const char* name) {
  return (by->stored && strcmp(by->stored, name) == 0) || (by->also && strcmp(by->also, name) == 0);
}

/* Whether what an inner loop goes through is made of what the outer one has set in this iteration. */
static int is_made_of(const Instruction* code, size_t count, Loop inner, Loop outer) {
  size_t first = 0, begin = 0;
  while (first < count && code[first].at < outer.begin) first++;
  while (begin < count && code[begin].at < inner.begin) begin++;
  for (size_t i = begin; i-- > first && !code[i].stored && code[i].target < 0 && code[i].op != POP_TOP;)
    for (size_t k = first; code[i].name && k < i; k++)
      if (is_set(&code[k], code[i].name)) return 1;
  return 0;
}

/* Whether a call of any(), all(), list(), ... with a generator became a loop, since 3.14: nothing takes the item. */
static int is_of_call(const Instruction* code, size_t count, Py_ssize_t begin) {
  for (size_t i = 0; PY_VERSION_HEX >= 0x030E0000 && i + 1 < count; i++) {
    if (code[i].at != begin) continue;
    const int next = code[i + 1].op;
    return code[i].op == FOR_ITER && (next == CHECKED || next == LIST_APPEND || next == SET_ADD);
  }
  return 0;
}

/* One loop for all that jumps back to the same place; outer loops first. */
static size_t find_loops(const Instruction* code, size_t count, Loop* loops) {
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    const Py_ssize_t begin = code[i].target;
    if (begin < 0 || begin > code[i].at || is_of_call(code, count, begin)) continue;
    size_t k = 0;
    while (k < n && loops[k].begin != begin) k++;
    if (k == n) loops[n++] = (Loop){.begin = begin};
    loops[k].end = code[i].next;
  }
  for (size_t i = 1; i < n; i++) /* few */
    for (size_t k = i; k > 0 && (loops[k].begin < loops[k - 1].begin ||
                                 (loops[k].begin == loops[k - 1].begin && loops[k].end > loops[k - 1].end));
         k--) {
      const Loop other = loops[k];
      loops[k] = loops[k - 1];
      loops[k - 1] = other;
    }
  for (size_t i = 0; i + 1 < count; i++)
    for (size_t k = 0; k < n && code[i].op == FOR_ITER; k++)
      if (loops[k].begin == code[i].at) loops[k].items = 1, loops[k].variable = code[i + 1].stored;
  for (size_t k = 1; k < n; k++) {
    size_t around = k;
    while (around > 0 && loops[around - 1].end < loops[k].end) around--;
    if (around == 0 || !loops[k].items) continue;
    const Loop outer = loops[around - 1];
    if (outer.variable && strncmp(outer.variable, "epoch", 5) == 0) continue;
    loops[k].repeats = loops[k].variable && strcmp(loops[k].variable, "_") == 0;
    loops[k].unpacks = !loops[k].repeats && outer.items && is_made_of(code, count, loops[k], outer);
  }
  return n;
}

/* Whether something in what is `around` may pass this place by: a jump over it, or back to the next iteration. */
static int is_passed_by(const Instruction* code, size_t count, Loop around, Py_ssize_t place) {
  for (size_t i = 0; i < count && code[i].at < place; i++) {
    const Py_ssize_t target = code[i].target;
    if (target < 0 || code[i].at < around.begin || code[i].op == FOR_ITER) continue;
    if ((target > place && target < around.end) || target == around.begin) return 1;
  }
  return 0;
}

static void add(char* text, size_t size, const char* object, const char* word, int maybe) {
  const size_t length = strlen(text);
  const int gap = length && text[length - 1] != '(' && word[0] != ')';
  const int more = snprintf(text + length, size - 1 - length, "%s%s%s%s%s", gap ? " " : "", object ? object : "",
                            object ? "." : "", word, maybe ? "?" : "");
  if (more < 0 || length + (size_t)more >= size - 1) text[size - 1] = 1; /* no room */
}

enum { YIELDS = 1, AWAITS };

static void write_names(const Instruction* code, size_t count, const Loop* loops, size_t loop_count, int yields,
                        char* text, size_t size) {
  const Loop whole = {0, count ? code[count - 1].next : 0};
  const Loop* open[MOST_DEPTH];
  size_t depth = 0, next = 0;
  for (size_t i = 0; i <= count; i++) {
    const Py_ssize_t at = i < count ? code[i].at : whole.end;
    while (depth && at >= open[depth - 1]->end) {
      depth--;
      const Loop around = depth ? *open[depth - 1] : whole;
      add(text, size, NULL, ")", is_passed_by(code, count, around, open[depth]->begin));
    }
    if (i == count) break;
    for (; next < loop_count && loops[next].begin == at; next++) {
      if (depth == MOST_DEPTH) {
        text[size - 1] = 1;
        return;
      }
      open[depth++] = loops + next;
      add(text, size, NULL, "(", 0);
      if (!loops[next].items) add(text, size, NULL, "~", 0);
      if (loops[next].repeats) add(text, size, NULL, "!", 0);
      if (loops[next].unpacks) add(text, size, NULL, "^", 0);
    }
    const Loop around = depth ? *open[depth - 1] : whole;
    if (code[i].name && code[i].called)
      add(text, size, code[i].object, code[i].name, is_passed_by(code, count, around, at));
    else if (yields && code[i].op == YIELD_VALUE)
      add(text, size, NULL,
          yields == AWAITS              ? "await"
          : i && code[i - 1].op == SEND ? "yield-from"
                                        : "yield",
          is_passed_by(code, count, around, at));
  }
}

/* Calls `use` with what the code is made of. */
typedef struct {
  PyCodeObject* code;
  const Instruction* instructions;
  size_t count;
  const Loop* loops;
  size_t loop_count;
} Decoded;
static void with_loops(PyCodeObject* code, void (*use)(const Decoded*, void*), void* argument) {
  PyObject* bytes = PyCode_GetCode(code);
  const Py_ssize_t count = bytes ? PyBytes_GET_SIZE(bytes) / 2 : 0;
  if (count > 0 && count <= MOST_UNITS) {
    Instruction* decoded = malloc((size_t)count * sizeof *decoded);
    Loop* loops = malloc((size_t)count * sizeof *loops);
    if (decoded && loops) {
      const size_t n = decode(code, (const unsigned char*)PyBytes_AS_STRING(bytes), count, decoded);
      const size_t found = find_loops(decoded, n, loops);
      use(&(Decoded){code, decoded, n, loops, found}, argument);
    }
    free(decoded);
    free(loops);
  }
  Py_XDECREF(bytes);
  PyErr_Clear();
}

typedef struct {
  char* text;
  size_t size;
} Text;
static void write_text(const Decoded* d, void* argument) {
  const Text* to = argument;
  const int awaits = d->code->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR);
  const int yields = awaits ? AWAITS : d->code->co_flags & CO_GENERATOR ? YIELDS : 0;
  if (d->loop_count || yields)
    write_names(d->instructions, d->count, d->loops, d->loop_count, yields, to->text, to->size);
}
void loops_of_code(PyCodeObject* code, char* text, size_t size) {
  text[0] = text[size - 1] = 0;
  with_loops(code, write_text, &(Text){text, size});
  if (text[size - 1]) strcpy(text, "?");
}

typedef struct {
  CodeLoop* loops;
  size_t most, count;
  unsigned char* handlers;
} Found;
/* Whether the loop may be left where it begins, on that line: the condition of a `while`, which 3.14 and later compile
 * once, at the beginning. */
static int is_left_on_line(const Decoded* d, Loop loop, int line) {
  for (size_t k = 0; PY_VERSION_HEX >= 0x030E0000 && k < d->count; k++) {
    const Instruction* each = &d->instructions[k];
    if (each->at >= loop.begin && each->at < loop.end && each->target >= loop.end &&
        PyCode_Addr2Line(d->code, (int)(2 * each->at)) == line)
      return 1;
  }
  return 0;
}

static void list_loops(const Decoded* d, void* argument) {
  Found* found = argument;
  for (size_t k = 0; k < d->count; k++) {
    const Instruction* each = &d->instructions[k];
    memset(found->handlers + each->at, 0, (size_t)(each->next - each->at));
  }
  for (size_t i = 0; i < d->loop_count && found->count < found->most; i++) {
    CodeLoop* loop = &found->loops[found->count++];
    const Loop at = d->loops[i];
    const int first = PyCode_Addr2Line(d->code, (int)(2 * at.begin));
    *loop = (CodeLoop){.begin = (uint32_t)(2 * at.begin),
                       .end = (uint32_t)(2 * at.end),
                       .line = first,
                       .one_line = 1,
                       .inner = at.repeats || at.unpacks};
    for (size_t k = 0; k < d->count; k++) {
      const Instruction* each = &d->instructions[k];
      if (each->at < at.begin || each->at >= at.end) continue;
      if (each->at == at.begin) loop->asks = each->op == FOR_ITER;
      const int line = PyCode_Addr2Line(d->code, (int)(2 * each->at));
      if (line > 0 && line != first) loop->one_line = 0;
      if (line > 0 && line < loop->line && !loop->asks) loop->line = line; /* the condition stands at the end */
    }
    if (!loop->one_line && is_left_on_line(d, at, first)) loop->asks = 1;
  }
}
size_t loops_in_code(PyCodeObject* code, CodeLoop* loops, size_t most, unsigned char* handlers) {
  Found found = {loops, most, 0, handlers};
  memset(handlers, 1, (size_t)Py_SIZE(code));
  with_loops(code, list_loops, &found);
  return found.count;
}

/* Whether an instruction puts the mark of a call on the stack: in 3.11 and 3.12 in front of what is called. */
static int marks_call(const Instruction* each) {
  switch (each->op) {
    case PUSH_NULL:
#if PY_VERSION_HEX < 0x030C0000
    case LOAD_METHOD:
#endif
      return 1;
#if PY_VERSION_HEX >= 0x030C0000
    case LOAD_ATTR:
    case LOAD_SUPER_ATTR:
#endif
    case LOAD_GLOBAL:
      return each->arg & 1;
    default:
      return 0;
  }
}

typedef struct {
  void (*use)(void* argument, const CodeCall* call);
  void* argument;
} Calls;
static void list_calls(const Decoded* d, void* argument) {
  const Calls* calls = argument;
  const Instruction* open[MOST_DEPTH]; /* what loads the callee of each call that has begun; NULL: not seen yet */
  size_t depth = 0;
  for (size_t i = 0; i < d->count; i++) {
    const Instruction* each = &d->instructions[i];
    if (marks_call(each)) {
      const int behind = PY_VERSION_HEX >= 0x030D0000 && each->op == PUSH_NULL && i > 0;
      if (depth < MOST_DEPTH) open[depth] = behind ? each - 1 : NULL;
      depth++;
    }
    if (each->called && each->name && depth > 0 && depth <= MOST_DEPTH && !open[depth - 1]) open[depth - 1] = each;
    CodeCall call = {.begin = (uint32_t)each->at, .end = (uint32_t)each->next, .contains = each->op == CONTAINS_OP};
    int calling = 0, ends = 0;
    switch (each->op) {
#if PY_VERSION_HEX < 0x030C0000
      case PRECALL:
        calling = 1;
        break;
#endif
      case CALL:
      case CALL_FUNCTION_EX:
#if PY_VERSION_HEX >= 0x030D0000
      case CALL_KW:
#endif
        calling = ends = 1;
        break;
      default:
        break;
    }
    if (calling && depth > 0 && depth <= MOST_DEPTH && open[depth - 1]) {
      call.name = open[depth - 1]->name;
      call.attribute = open[depth - 1]->object != NULL;
    }
    if (calling || call.contains) calls->use(calls->argument, &call);
    if (ends && depth) depth--;
  }
}
void calls_in_code(PyCodeObject* code, void (*use)(void* argument, const CodeCall* call), void* argument) {
  with_loops(code, list_calls, &(Calls){use, argument});
}

#include "python/lines/lines_stack.h"

#include <pthread.h>

#include "python/lines/lines_frames.h"

__thread LineStack* lines_stack;
static pthread_key_t key; /* its destructor frees the stack of a thread that ends */
static pthread_once_t key_made = PTHREAD_ONCE_INIT;

static void thread_ends(void* any) {
  (void)any;
  free(lines_stack);
  lines_stack = NULL;
}
static void make_key(void) { pthread_key_create(&key, thread_ends); }

static LineStack* grown(LineStack* stack) {
  const size_t room = stack ? stack->room * 2 : 64;
  LineStack* made = realloc(stack, sizeof *made + room * sizeof(LineActivation));
  if (!made) return NULL;
  if (!stack) *made = (LineStack){.start = lines_starts};
  made->room = room;
  pthread_once(&key_made, make_key);
  pthread_setspecific(key, made);
  return lines_stack = made;
}

LineActivation* lines_push(LineCode* code, void* frame) {
  LineStack* stack = lines_stack_here();
  if ((!stack || stack->depth == stack->room) && !(stack = grown(stack))) return NULL;
  LineActivation* activation = &stack->activations[stack->depth++];
  *activation = (LineActivation){.code = code, .frame = frame};
  return activation;
}

LineActivation* lines_find_below(LineStack* stack, LineCode* code, void* frame) {
  for (size_t n = stack->depth; n > 0; n--) {
    LineActivation* activation = &stack->activations[n - 1];
    if (activation->frame != frame || activation->code != code) continue;
    stack->depth = n;
    return activation;
  }
  return NULL;
}

void lines_pop(LineCode* code, void* frame) {
  LineActivation* activation = lines_find(code, frame);
  if (!activation) return;
  lines_close(activation);
  lines_stack->depth--;
}

const LineActivation* lines_activations(size_t* count) {
  const LineStack* stack = lines_stack_here();
  *count = stack ? stack->depth : 0;
  return stack ? stack->activations : NULL;
}

LineStack* lines_switch(LineStack* to) {
  LineStack* from = lines_stack;
  const uint64_t now = strobe_ticks();
  if (from) from->left = now;
  if (to) to->away += now - to->left;
#if PY_VERSION_HEX < 0x030C0000
  const int traced = lines_tracing(to && to->traced);
  if (from) from->traced = traced;
#endif
  lines_stack = to;
  return from;
}

void lines_stack_free(LineStack* stack) { free(stack); }

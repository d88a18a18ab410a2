// torch_collectives.h - what a collective of torch.distributed moves, carried from the thread that asks for it to the
// one that runs it. Gloo runs collectives on threads of its own, under ranges (`gloo:all_reduce`) that have a name
// and nothing else; PyTorch hands its thread-local debug information on to them, and that is where the facts travel.
#pragma once
#include <atomic>
#include <memory>

#include "include/strobe.h"

#ifdef __cplusplus
extern "C" {
#endif
struct strobe_collective {
  uint32_t collective, dtype, group, group_ranks, about;  // texts; about: see STROBE_ROW_GROUP_COLLECTIVE
  int32_t sequence, root, bucket;                         // or STROBE_NOTHING_32
  int64_t sent_bytes, received_bytes;
  uint32_t region;    // the function that asks, for the sums of message_totals
  int32_t peer_rank;  // in the job, of a send or receive; or STROBE_NOTHING_32
};
// Finds what is needed in libc10, loaded before. 0, or what is missing there.
STROBE_API const char* strobe_collectives_start(const char* libc10);
STROBE_API void strobe_collectives_stop(void);
// Around the call that asks. `later`: a range on another thread will take the facts, if PyTorch's observer is on here.
// Otherwise they become a row of the span that is open at the end, unless a range within has taken them; where there is
// no observer, that span is made here.
STROBE_API void strobe_collective_begin(const strobe_collective* facts, int later);
STROBE_API void strobe_collective_end(void);
// Around a wait for a message of gloo, with a region for its span. The range of the message (`gloo:send`) ends inside.
STROBE_API void strobe_message_wait_begin(uint32_t region);
STROBE_API void strobe_message_wait_end(uint32_t region);
#ifdef __cplusplus
}
#endif

namespace strobe {

// As rows of collectives have it, in 21 bits.
inline int32_t short_number(int64_t number) {
  return number < 0 || number >= -STROBE_NOTHING_21 ? STROBE_NOTHING_21 : int32_t(number);
}

struct CollectiveFacts;
extern std::atomic<bool> collectives_on;

// Whether a range of this name runs a collective.
inline bool runs_collective(const char* name) {
  return collectives_on.load(std::memory_order_relaxed) &&
         (!__builtin_strncmp(name, "gloo:", 5) || !__builtin_strncmp(name, "nccl:", 5));
}
// Whether it is that of a message. It begins where that is asked for, and ends, as if it were the innermost one, where
// the program waits for it. It has no span: those of the two calls have its time.
inline bool runs_message(const char* name) {
  return runs_collective(name) && (!__builtin_strcmp(name, "gloo:send") || !__builtin_strncmp(name, "gloo:recv", 9));
}
// Whether the innermost range of ITT on this thread is of this region: PyTorch's observer is on, and has seen the call.
bool innermost_range(uint32_t region);
// Whether this thread is in a call that asks for a collective: what runs inside is part of it.
bool asks_for_collective();
// The facts that came to this thread, if nobody has taken them.
std::shared_ptr<CollectiveFacts> take_collective();
// The range of these facts is about to end, and its span is the innermost one.
void collective_over(const CollectiveFacts& facts);

}  // namespace strobe

// mapping_guard.h - mapped files that go bad under the program. A store into the mapping of a file that was cut short,
// or whose disk fails or has become read-only, is a SIGBUS. In a guarded mapping memory takes the place of such a page,
// and the program goes on; in any other place a SIGBUS is what it would be without us.
#pragma once
#include <stddef.h>

namespace strobe {

// Guard a mapping; `unguard` before its addresses may become somebody else's. Both from any thread.
void guard(void* mapping, size_t bytes);
void unguard(void* mapping);
// Of a guarded mapping that another thread may still use: private zero pages take its place.
void replace_by_zeros(void* mapping, size_t bytes);
// Before a session, and in a forked child: nothing is guarded, nothing has happened.
void guard_nothing();
// Pages that memory has taken the place of, and whether some came back without what was in them.
bool guard_was_needed();
bool guard_lost_content();

}  // namespace strobe

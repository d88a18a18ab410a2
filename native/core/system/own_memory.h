// own_memory.h - memory of the recorder that does not come from the program's malloc.
//
// A hook in a function of the program may run inside of malloc: one of the program's own, or any that a signal's
// handler has interrupted. Whatever the recorder needed from malloc there would wait for a lock that its own thread
// holds.
#pragma once

namespace strobe {

// From now on `new` in this library takes from a reserve of address space, and from malloc only when that is used up.
void use_own_memory();

// Around a fork.
void lock_own_memory();
void unlock_own_memory();

}  // namespace strobe

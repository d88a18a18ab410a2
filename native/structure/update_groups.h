// update_groups.h - how many updates make one step: a GAN updates its discriminator and its generator in turn, an actor
// is updated once for several updates of its critic.
#pragma once
#include <stdint.h>
#include <span>

namespace strobe::structure {

// `ids`: the operators of a thread, in order. `updates`: where each update is among them, ascending. Two updates are of
// one kind if the same operators lead to them, or if one has all those of the other and more: a validation between
// them; where a batch of data serves several, the one that waits for it is of its own kind. `waits`: which ids are
// waits for data. Returns 1 where kinds do not come in a rhythm, 0 where there are too few updates to tell.
uint32_t updates_per_step(std::span<const uint32_t> ids, std::span<const uint32_t> updates,
                          std::span<const uint32_t> waits);

}  // namespace strobe::structure

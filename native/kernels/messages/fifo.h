// fifo.h - which send belongs to which receive, and sorting without comparisons, for logs of many millions of rows.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace strobe {

// Ends of messages. sender, receiver: -1 where unknown. asked_ns: when each was asked for: MPI counts them in this
// order. All spans are equally long.
struct MessageEnds {
  std::span<const int64_t> sender, receiver, communicator, tag, asked_ns;
  std::span<const uint8_t> sent;
};

struct MatchedEnds {
  std::vector<int64_t> send, receive;
};

// The n-th send of a sender, receiver, communicator and tag is the n-th receive. Messages come in order of these four,
// then of time. `complete`: all ends are there, so that nothing is known where one side has more.
MatchedEnds match_fifo(const MessageEnds& ends, bool complete);

// The places of entries in order of their group, below `groups`; those of a group in their own order.
std::vector<int64_t> in_order_of(std::span<const int64_t> group, size_t groups);

// Adds each value to that of its group in `into`, or makes that the least or the most of both.
enum class Join { add, least, most };
void join_at(std::span<int64_t> into, std::span<const int64_t> group, std::span<const int64_t> values, Join join);

// The least of the values in each range [first, last); INT64_MAX where it is empty. Neither end of a range lies before
// that of the range before it.
std::vector<int64_t> least_in_ranges(std::span<const int64_t> values, std::span<const int64_t> first,
                                     std::span<const int64_t> last);

}  // namespace strobe

// message_bindings.cpp - matching of messages, and sorting of what has many millions of rows.
#include <malloc.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/messages/fifo.h"
#include "python/bindings/conversions.h"

namespace nb = nanobind;
using namespace strobe;

namespace {

using Whole = Input<int64_t>;

void same_length(size_t count, std::initializer_list<size_t> others) {
  for (const size_t other : others)
    if (other != count) throw std::invalid_argument("columns differ in length");
}

nb::tuple matched(Whole sender, Whole receiver, Whole communicator, Whole tag, Whole asked_ns, Input<uint8_t> sent,
                  bool complete) {
  same_length(sent.shape(0),
              {sender.shape(0), receiver.shape(0), communicator.shape(0), tag.shape(0), asked_ns.shape(0)});
  MatchedEnds found = unlocked([&] {
    return match_fifo({view(sender), view(receiver), view(communicator), view(tag), view(asked_ns), view(sent)},
                      complete);
  });
  return nb::make_tuple(owned(std::move(found.send)), owned(std::move(found.receive)));
}

void inside(const Whole& group, size_t groups) {
  for (const int64_t each : view(group))
    if (each < 0 || size_t(each) >= groups) throw std::invalid_argument("a group that is not there");
}

// Whoever makes and frees the same large arrays again and again otherwise pays for their pages each time.
void keep_freed_memory(bool keep) {
  constexpr int kMost = 32 << 20;  // beyond this, each has a mapping of its own
  mallopt(M_MMAP_THRESHOLD, kMost);
  mallopt(M_TRIM_THRESHOLD, keep ? -1 : 2 * kMost);
  if (!keep) malloc_trim(0);
}

template <Join join>
void joined(nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> into, Whole group, Whole values) {
  same_length(group.shape(0), {values.shape(0)});
  inside(group, into.shape(0));
  unlocked([&] { join_at({into.data(), into.shape(0)}, view(group), view(values), join); });
}

nb::object ordered(Whole group, size_t groups) {
  inside(group, groups);
  return owned(unlocked([&] { return in_order_of(view(group), groups); }));
}

nb::object least(Whole values, Whole first, Whole last) {
  same_length(first.shape(0), {last.shape(0)});
  const auto begin = view(first), end = view(last);
  const auto inside = [&](int64_t at) { return at >= 0 && size_t(at) <= values.shape(0); };
  if (!std::ranges::is_sorted(begin) || !std::ranges::is_sorted(end) || !std::ranges::all_of(begin, inside) ||
      !std::ranges::all_of(end, inside))
    throw std::invalid_argument("ranges that are not in order, or not inside");
  return owned(unlocked([&] { return least_in_ranges(view(values), begin, end); }));
}

}  // namespace

void register_messages(nb::module_& m) {
  m.def("keep_freed_memory", &keep_freed_memory, nb::arg("keep"),
        "Keep freed memory for what comes next, or give it back to the system and do so from now on.");
  m.def("match_fifo", &matched, nb::arg("sender"), nb::arg("receiver"), nb::arg("communicator"), nb::arg("tag"),
        nb::arg("asked_ns"), nb::arg("sent"), nb::arg("complete"),
        "Places of sends and of their receives: native/kernels/messages/fifo.h.");
  m.def("in_order_of", &ordered, nb::arg("group"), nb::arg("groups"),
        "Places of entries in order of their group; those of a group in their own order.");
  const auto joining = [&m](const char* name, auto function) {
    m.def(name, function, nb::arg("into").noconvert(), nb::arg("group"), nb::arg("values"),
          "Join each value with that of its group in `into`.");
  };
  joining("add_at", &joined<Join::add>);
  joining("least_at", &joined<Join::least>);
  joining("most_at", &joined<Join::most>);
  m.def("least_in_ranges", &least, nb::arg("values"), nb::arg("first"), nb::arg("last"),
        "The least value of each range [first, last), 2**63 - 1 where it is empty. Both ends of ranges do not fall.");
}

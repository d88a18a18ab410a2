#include "structure/source_loops.h"

#include <algorithm>
#include <charconv>

#include "include/strobe.h"
#include "structure/region_names.h"

namespace strobe::structure {

namespace {

// mpi4py calls MPI_Allreduce by two names: Allreduce, and allreduce for Python objects.
bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

SourceLoops::SourceLoops(std::string_view text) : around_{0}, too_long_(text == "?") {
  uint32_t loop = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t end = std::min(text.find_first_of(" ()", at), text.size());
    if (c == '(') {
      around_.push_back(loop);
      loop = uint32_t(around_.size() - 1);
    } else if (c == ')') {
      loop = around_[loop];
    } else if (end > at) {
      const bool always = text[end - 1] != '?';
      const std::string_view called = text.substr(at, end - at - !always);
      const size_t dot = called.rfind('.'), begin = dot == called.npos ? 0 : dot + 1;
      if (called == "!")
        inner_.resize(loop), inner_.push_back(Inner::repeats);
      else if (called == "^")
        inner_.resize(loop), inner_.push_back(Inner::unpacks);
      else if (called == "~")
        whiles_.push_back(loop);
      else if (called.starts_with('#'))
        std::from_chars(called.data() + 1, called.data() + called.size(), own_);
      else if (called == "await")
        awaits_ = true;
      else if (called == "yield" || called == "yield-from")
        (loop > 0 || called != "yield") ? void(yields_ = true) : void(yields_once_++);
      else if (!called.empty())  // empty: behind a loop
        sites_.push_back({std::string(called.substr(begin)), std::string(called.substr(0, begin)), loop, always});
    }
    at = std::max(end, at + 1);
  }
}

SourceLoops::Calls SourceLoops::calls_of(std::string_view name) const {
  Calls calls;
  bool varies = false, in_loops = false;
  const Site* first = nullptr;
  for (const Site& site : sites_) {
    if (!same_name(site.name, name)) continue;
    if (!first) first = &site;
    varies |= first != &site && (site.object != first->object || site.object == ".");  // of two classes, perhaps
    if (site.loop == 0) {
      calls.before += calls.loop == 0;
      continue;
    }
    if (calls.loop == 0)
      calls.loop = site.loop;
    else if (is_within(calls.loop, site.loop) && calls.loop != site.loop)
      calls.loop = site.loop, varies = in_loops = true;
    else if (!is_within(site.loop, calls.loop))
      return {};
    varies |= site.loop != calls.loop || !site.always;
    in_loops |= site.loop != calls.loop;
    calls.times++;
  }
  if (!in_loops) calls.most = calls.times;
  if (varies) calls.times = 0;
  return calls;
}

bool SourceLoops::calls(std::string_view name) const {
  return std::ranges::any_of(sites_, [&](const Site& site) { return same_name(site.name, name); });
}

std::vector<uint32_t> SourceLoops::outermost() const {
  std::vector<uint32_t> loops;
  for (uint32_t loop = 1; loop < around_.size(); ++loop)
    if (around_[loop] == 0) loops.push_back(loop);
  return loops;
}

std::vector<std::string> SourceLoops::in_each_iteration(uint32_t loop) const {
  std::vector<std::string> names;
  for (const Site& site : sites_)
    if (site.loop == loop && site.always) names.push_back(site.name);
  return names;
}

std::vector<std::string> SourceLoops::in_front_of(std::string_view first, uint32_t loop) const {
  std::vector<std::string> names;
  for (const Site& site : sites_) {
    if (site.loop != loop) continue;
    if (same_name(site.name, first)) break;
    if (!site.always && calls_of(site.name).loop == loop) names.push_back(site.name);
  }
  // What is called behind it, too, begins no iteration.
  std::erase_if(names, [&](const std::string& name) {
    const auto same = [&](const Site& site) { return is_within(site.loop, loop) && same_name(site.name, name); };
    return std::ranges::count_if(sites_, same) > std::ranges::count(names, name);
  });
  return names;
}

SourceLoops::Inner SourceLoops::inner_of(uint32_t loop, std::string_view name, uint32_t own) const {
  for (uint32_t inner = loop + 1; inner < inner_.size(); ++inner) {
    if (inner_[inner] == Inner::none || around_[inner] != loop) continue;
    const auto is_called = [&](const Site& site) { return is_within(site.loop, inner) && same_name(site.name, name); };
    if (inner == own || std::ranges::any_of(sites_, is_called)) return inner_[inner];
  }
  return Inner::none;
}

bool SourceLoops::is_within(uint32_t loop, uint32_t around) const {
  while (loop > around) loop = around_[loop];  // those around it have smaller numbers
  return loop == around;
}

SourceCode::SourceCode(std::string_view region_name, std::string_view text)
    : loops(text), is_loop(!text.empty() && is_iteration(region_name, STROBE_PYTHON)) {
  if (!is_loop) region_name = region_name.substr(region_name.rfind('.') + 1);
  if (region_name.starts_with("MPI_")) region_name.remove_prefix(4);
  name = region_name;
}

bool SourceCode::is_called(std::string_view other) const { return same_name(name, other); }

}  // namespace strobe::structure

#include "core/from_environment.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_text.h"
#include "include/strobe.h"

namespace strobe {

namespace {

std::string_view field(std::string_view session, std::string_view key) {  // `key=value` lines
  while (!session.empty()) {
    std::string_view line = session.substr(0, session.find('\n'));
    if (line.substr(0, key.size()) == key && line.substr(key.size(), 1) == "=") return line.substr(key.size() + 1);
    session.remove_prefix(line.size() < session.size() ? line.size() + 1 : line.size());
  }
  return {};
}

bool lists(std::string_view names, std::string_view name) {  // a,b,c
  for (size_t at = 0; at <= names.size();) {
    size_t end = names.find(',', at);
    if (end == names.npos) end = names.size();
    if (names.substr(at, end - at) == name) return true;
    at = end + 1;
  }
  return false;
}

std::string describe(bool main) {
  std::string out = "{\"argv\": [", command;
  if (FILE* file = fopen("/proc/self/cmdline", "re")) {
    char part[4096];
    while (size_t n = fread(part, 1, sizeof part, file)) command.append(part, n);
    fclose(file);
  }
  for (size_t at = 0; at < command.size();) {
    size_t end = command.find('\0', at);
    if (end == command.npos) end = command.size();
    if (at) out += ", ";
    append_json_text(out, std::string_view(command).substr(at, end - at));
    at = end + 1;
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  out += "], \"host\": ";
  append_json_text(out, host);
  return out + ", \"python\": \"\", \"main\": " + (main ? "true}" : "false}");
}

// As the core counts: 0 keeps all iterations, UINT32_MAX none.
uint32_t kept(std::string_view text) {
  if (text.empty() || text == "all") return 0;
  unsigned long n = strtoul(std::string(text).c_str(), nullptr, 10);
  return n == 0 || n > 0x7FFFFFFF ? UINT32_MAX : uint32_t(n);
}

// A time with its unit, as record/options.py reads it and has checked it: 10us. Not strtod: its decimal point is that
// of the program's locale.
uint64_t nanoseconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit = text.substr(size_t(end - text.data()));
  constexpr std::pair<std::string_view, double> kUnits[] = {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [name, size] : kUnits)
    if (unit == name) return uint64_t(value * size + 0.5);
  return 0;
}

}  // namespace

bool start_from_environment(const char* adapter) {
  if (strobe_active()) return true;
  const char *session = getenv("STROBE_SESSION"), *disabled = getenv("STROBE_DISABLE");
  if (!session || !*session || (disabled && *disabled && strcmp(disabled, "0"))) return false;
  std::string folder(field(session, "folder"));
  std::string_view adapters = field(session, "adapters");
  if (folder.empty() || (*adapter && !lists(adapters, adapter))) return false;
  int supervisor = atoi(std::string(field(session, "supervisor")).c_str());
  bool main = supervisor && supervisor == getppid();
  std::string description = describe(main);
  std::string clock_server(field(session, "clock"));
  strobe_options options{};
  options.folder = folder.c_str();
  options.description = description.c_str();
  options.metrics_period_ms = lists(adapters, "counters") ? 0 : UINT32_MAX;
  options.silent = !main;
  options.keep = kept(field(session, "--keep"));
  options.min_duration_ns = nanoseconds(field(session, "--min-duration"));
  options.clock_server = clock_server.c_str();
  if (int error = strobe_start(&options)) {
    // Between two recording windows; or what was called here until now (an allocator with hooks) was faster.
    if (error == EBUSY) return strobe_active();
    if (main) fprintf(stderr, "strobe: this program runs unrecorded: %s\n", strobe_error());
    return false;
  }
  if (main) prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever kills strobe means the program
  strobe_stop_at_exit();
  return true;
}

}  // namespace strobe

extern "C" int strobe_begin() { return strobe::start_from_environment("") ? 1 : 0; }

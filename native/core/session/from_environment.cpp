#include "core/session/from_environment.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <string>
#include <string_view>

#include "core/format/json_text.h"
#include "core/format/secrets.h"
#include "include/strobe.h"

namespace strobe {

namespace {

std::string_view field(std::string_view session, std::string_view key) {  // `key=value` lines
  for (const auto part : std::views::split(session, '\n')) {
    const std::string_view line(part.begin(), part.end());
    if (line.starts_with(key) && line.substr(key.size()).starts_with('=')) return line.substr(key.size() + 1);
  }
  return {};
}

bool lists(std::string_view names, std::string_view name) {  // a,b,c
  return std::ranges::any_of(std::views::split(names, ','),
                             [&](const auto part) { return std::string_view(part.begin(), part.end()) == name; });
}

std::string describe(bool main) {
  std::string out = "{\"argv\": [", command;
  if (FILE* file = fopen("/proc/self/cmdline", "re")) {
    char part[4096];
    while (size_t n = fread(part, 1, sizeof part, file)) command.append(part, n);
    fclose(file);
  }
  if (command.ends_with('\0')) command.pop_back();
  WithoutSecrets words;
  for (const auto argument : std::views::split(command, '\0')) {
    if (!out.ends_with('[')) out += ", ";
    append_json_text(out, words.shown(std::string_view(argument.begin(), argument.end())));
  }
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  out += "], \"host\": ";
  append_json_text(out, host);
  return out + ", \"python\": \"\", \"main\": " + (main ? "true}" : "false}");
}

// The fields of strobe_options that follow from the options of `strobe run` (core_settings in src/strobe/record/
// options.py reads those; here are numbers only). Not strtod: its decimal point is the program's locale's.
template <class Number>
void set(Number& to, std::string_view session, const char* key) {
  const std::string_view text = field(session, key);
  std::from_chars(text.data(), text.data() + text.size(), to);
}

}  // namespace

std::string session_option(const char* name) {
  const char* session = getenv("STROBE_SESSION");
  return session ? std::string(field(session, "--" + std::string(name))) : std::string();
}

bool session_asks(const char* adapter, const char* level) {
  const char *session = getenv("STROBE_SESSION"), *levels = getenv("STROBE_LEVELS");
  return lists(session ? field(session, "levels") : levels ? levels : "", std::string(adapter) + "+" + level);
}

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
  const std::string counters(field(session, "core.counters"));
  options.counters = counters.c_str();
  set(options.metrics_period_ms, session, "core.metrics_period_ms");
  set(options.keep, session, "core.keep");
  set(options.min_duration_ns, session, "core.min_duration_ns");
  set(options.throttle_calls, session, "core.throttle_calls");
  set(options.throttle_ns, session, "core.throttle_ns");
  set(options.max_bytes, session, "core.max_bytes");
  set(options.max_overhead, session, "core.max_overhead");
  set(options.flight_ns, session, "core.flight_ns");
  set(options.flight_bytes, session, "core.flight_bytes");
  options.silent = !main;
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

// The C API of the core: include/strobe.h.
#include "core/session/session.h"
#include "core/system/own_memory.h"

using strobe::Inside;
using strobe::session;

extern "C" {

int strobe_start(const strobe_options* options) {
  const Inside inside;
  const int failed = session().start(*options);
  if (!failed) strobe::turn_streams(STROBE_STREAMS_GO_ON);
  return failed;
}
void strobe_stop(void) {
  const Inside inside;
  strobe::turn_streams(STROBE_STREAMS_END);
  session().stop(-1);
}
int strobe_active(void) { return session().recording(); }
void strobe_mute(void) {
  const Inside inside;
  strobe::turn_streams(STROBE_STREAMS_REST);
  session().mute();
}
void strobe_unmute(void) {
  const Inside inside;
  session().unmute();
  strobe::turn_streams(STROBE_STREAMS_GO_ON);
}
const char* strobe_error(void) { return session().error(); }
int strobe_recorded_here(void) {
  const strobe::Producer& p = strobe::producer;
  if (p.busy || p.writing || p.hidden) return STROBE_NOT_RECORDED;
  return session().recording() ? STROBE_RECORDED : session().forked() ? STROBE_IN_CHILD : STROBE_NOT_RECORDED;
}
void strobe_use_own_memory(void) { strobe::use_own_memory(); }
const char* strobe_folder(void) { return session().folder(); }
void strobe_pause(void) {
  const Inside inside;
  session().fork_begins();
}
void strobe_resume(void) { session().fork_ends(); }
void strobe_before_user_changes(void) {
  if (strobe::producer.busy) return;
  const Inside inside;
  session().open_all_files();
}
void strobe_note_exit(int exit_code) {
  const Inside inside;
  strobe::turn_streams(STROBE_STREAMS_EXIT);
  session().stop(exit_code & 0xFF);
}
uint32_t strobe_region(const strobe_region_info* info) {
  const Inside inside;
  return session().region(*info);
}
void strobe_enter(uint32_t region) { strobe::put(strobe::kEnter, region); }
void strobe_leave(uint32_t region) { strobe::put(strobe::kLeave, region); }
void strobe_name_thread(const char* name) { session().name_thread(name); }
void strobe_name_thread_as_system(const char* name) {
  if (!strobe::producer.name) session().name_thread(name);
}
void strobe_count(const char* what, uint64_t n) { session().count(what, n); }
void strobe_stop_at_exit(void) { session().stop_at_exit(); }
int strobe_stops_at_exit(void) { return session().stops_at_exit(); }
uint64_t strobe_ticks(void) { return strobe::ticks(); }
double strobe_ns_per_tick(void) { return session().ns_per_tick(); }
void strobe_enter_at(uint32_t region, uint64_t ticks) { strobe::put(strobe::kEnter, region, ticks); }
void strobe_leave_at(uint32_t region, uint64_t ticks) { strobe::put(strobe::kLeave, region, ticks); }
void* strobe_this_thread(void) { return &strobe::producer; }
void strobe_leave_for(void* thread, uint32_t region, uint64_t ticks) {
  strobe::put(strobe::kLeave, region, ticks, *static_cast<strobe::Producer*>(thread));
}
uint64_t strobe_records(void) {
  const strobe::Producer& p = strobe::producer;
  return p.head + (p.header ? p.header->lost.load(std::memory_order_relaxed) : 0);
}
void strobe_switch_stack(uint32_t stack) { strobe::put(strobe::kSwitch, stack & (strobe::kRegionLimit - 1)); }
const uint8_t* strobe_throttle_flags(void) { return reinterpret_cast<const uint8_t*>(session().throttle().flags()); }
int strobe_functions_given_up(void) { return session().throttle().given_up(); }
void strobe_hook_cost(const uint64_t* times, double ns) { session().cost().set_hook(times, ns); }
void strobe_note_throttled(uint32_t region) {
  const Inside inside;
  if (session().throttle().note(region)) session().count("functions_throttled", 1);
}
void strobe_name_process(const char* name) {
  const Inside inside;
  session().name_process(name);
}
uint32_t strobe_text(const char* utf8) { return utf8 && *utf8 ? session().text(utf8) : 0; }
void strobe_row(uint32_t kind, const int64_t* values) { strobe_row_at(kind, 0, values); }
void strobe_row_at(uint32_t kind, uint64_t ticks, const int64_t* values) {
  strobe::RowProducer& r = strobe::row_producer;
  if (__builtin_expect(r.head >= r.limit.load(std::memory_order_relaxed), 0))
    return strobe::put_row_slowly(kind, ticks, values);
  strobe::write_row(r, kind, ticks ? ticks : strobe::ticks(), strobe::producer.head, values);
}
uint32_t strobe_location(uint64_t thread_id, const char* name) { return session().location_of(thread_id, name); }
void strobe_location_over(uint64_t thread_id) { session().location_over(thread_id); }
void strobe_hide_thread(void) { strobe::producer.hidden = true; }
void strobe_total(const strobe_total_key* key, const strobe_total_sums* more) { session().total(*key, *more); }
uint32_t strobe_metric(const char* name, const char* unit) {
  const Inside inside;
  return session().metric(name, unit);
}
void strobe_sample(uint32_t metric, double value) { session().sample(metric, value); }
uint32_t strobe_lines_epoch = 1;
strobe_line* strobe_lines(const char* file, const char* function, uint32_t function_line, uint32_t first_line,
                          uint32_t count) {
  return session().lines(file, function, function_line, first_line, count);
}
void strobe_lines_open_with(strobe_open_lines ask) { strobe::open_lines.store(ask); }
void strobe_note_rank(int rank, int size) {
  const Inside inside;
  session().note_rank(rank, size);
}
void strobe_note_call_site(const char* site, const char* object, uint64_t address) {
  const Inside inside;
  session().note_call_site(site, object, address);
}
}

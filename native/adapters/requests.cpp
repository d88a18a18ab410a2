#include "adapters/requests.h"

#include <mutex>

#include "core/session/session.h"

void strobe_request(const strobe_stream_span* spans, size_t count, const strobe_stream_span* rows) {
  using strobe::session;
  const strobe::Inside inside;
  strobe_stream* const requests = strobe_task_open("requests", 1);
  std::lock_guard lock(session().streams_mutex());
  bool recorded = strobe_task_tell(requests, spans, count);
  for (size_t i = 0; recorded && i + 1 < count; i++) recorded = strobe_stream_tell(requests, rows + i) != 0;
  if (!recorded && session().recording(spans->start_ns)) strobe_count("requests_not_recorded", 1);
}

// window_page.h - what a process that leads a recording shares with its children, and with whoever asks it to record.
#pragma once
#include <stdint.h>

#include <atomic>
#include <string>

namespace strobe {

constexpr size_t kPageBytes = 4096;

// A request is known by its number, which grows from one to the next.
struct WindowPage {
  std::atomic<uint32_t> word;              // the window: closed, open
  std::atomic<uint32_t> armed;             // whether requests are taken
  std::atomic<int64_t> rank;               // below 0: none
  std::atomic<int64_t> steps;              // that have begun
  std::atomic<int64_t> request, answered;  // the newest one that was made, and that was taken
  // The newest request: before which step the window opens (below 0: at once), for how many steps (0: no limit), for
  // how long.
  std::atomic<int64_t> begin_step, step_count, for_ns;
  // When the window was opened last: the newest request that was taken by then, and the steps that had begun.
  std::atomic<int64_t> opened_request, opened_step;
  std::atomic<int64_t> look;  // the newest look of another node that this page was written to its file for
};

// The first bytes of `file`, shared with all processes of this node. Who leads makes the file. Null, and errno.
void* shared_page(const char* file, bool leads);
void release_page(void* page);

// What the page of a process is now, also on another node: as far as it was written to its file. False, and errno.
bool read_page(const char* file, WindowPage& state);

// Ask the process of a page on this node.
void request_window(WindowPage& page, int64_t number, int64_t begin_step, int64_t step_count, int64_t for_ns);

}  // namespace strobe

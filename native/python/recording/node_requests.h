// node_requests.h - requests to the armed processes of other nodes, which share nothing but the trace's folder.
//
// Who asks writes the file `window-request`. On each node one armed process looks at it once a second: it hands a
// request on to the pages of its node, and writes these to their files for 10 s after somebody has looked at the job.
// Only reads and writes of opened files go between nodes: mapped memory is not the same on two of them, and what a
// file system knows of a folder may be old.
#pragma once
#include <stdint.h>

#include <atomic>
#include <string>

namespace strobe {

struct WindowRequest {
  int64_t look;    // number of the newest look at the job; a request is one, too
  int64_t number;  // of the request
  int64_t begin_step, step_count, for_ns;
  char host[72];  // of who asked: there the processes were asked directly
  uint64_t check;
};

class NodeRequests {
 public:
  // The process of this page, FOLDER/window-HOST-PID, may have to look at requests. False, and errno.
  bool begin(const std::string& page_file);
  void end();
  void forget();  // in a forked child

  // Look, unless another process of this node does. To be called once in kPeriodNs.
  void poll();

  static constexpr int64_t kPeriodNs = 1000000000;

 private:
  struct Node;
  bool is_mine(int64_t now_ns);
  void hand_on(const WindowRequest& request, bool forward);

  Node* node_ = nullptr;
  int64_t lease_ns_ = 0;
  bool announced_ = false;
  std::string file_, folder_, host_;
};

// Look at a job, or ask it: all its nodes but `request.host`. Return the number. Below 0: errno.
int64_t look_at_nodes(const std::string& folder);
int64_t request_of_nodes(const std::string& folder, WindowRequest request);

// The newest look that a node has answered: all its pages are written. 0: none.
int64_t answer_of_node(const std::string& folder, const std::string& host);

}  // namespace strobe

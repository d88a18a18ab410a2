#include "python/recording/node_requests.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/system/clock.h"
#include "python/recording/window_page.h"

namespace strobe {

namespace {

constexpr int64_t kLeaseNs = 3 * NodeRequests::kPeriodNs;  // a process that looked no more for so long is replaced
constexpr int64_t kFollowNs = 10 * NodeRequests::kPeriodNs;

std::string request_file(const std::string& folder) { return folder + "/window-request"; }

std::string node_file(const std::string& folder, const std::string& host) {
  return folder + "/window-" + host + "-node";
}

uint64_t check_of(const WindowRequest& request) {
  uint64_t sum = 14695981039346656037u;  // FNV-1a: half of a write that another node sees is no request
  const auto* bytes = reinterpret_cast<const unsigned char*>(&request);
  for (size_t i = 0; i < offsetof(WindowRequest, check); i++) sum = (sum ^ bytes[i]) * 1099511628211u;
  return sum;
}

// The newest request; none yet: zeros. Each look opens the file: that is when NFS asks its server whether it changed.
bool read_request(const std::string& folder, WindowRequest& request) {
  const int fd = open(request_file(folder).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t size = pread(fd, &request, sizeof request, 0);
  close(fd);
  if (size == 0) return memset(&request, 0, sizeof request), true;
  return size == ssize_t(sizeof request) && request.check == check_of(request);
}

int64_t write_request(const std::string& folder, WindowRequest& request) {
  request.check = check_of(request);
  const int fd = open(request_file(folder).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  const bool whole = pwrite(fd, &request, sizeof request, 0) == ssize_t(sizeof request) && fsync(fd) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  return whole ? request.look : -1;
}

// What is in the page goes to where other nodes read it.
void write_out(const std::string& file) {
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// Numbers grow also if several ask, from nodes whose clocks differ.
int64_t number_after(const WindowRequest& newest) { return std::max(clock_ns(CLOCK_REALTIME), newest.look + 1); }

}  // namespace

// What the armed processes of a node have in common, in `window-HOST-node`.
struct NodeRequests::Node {
  std::atomic<int64_t> answered;       // the newest look that all pages of the node were written for
  std::atomic<int64_t> lease_ns;       // until when, by CLOCK_MONOTONIC, one of them looks for all
  std::atomic<int64_t> begun;          // whether one has looked
  std::atomic<int64_t> number;         // the newest request that was handed on
  std::atomic<int64_t> look, look_ns;  // the newest look that was seen, and when
};

bool NodeRequests::begin(const std::string& page_file) {
  end();
  file_ = page_file, folder_ = page_file.substr(0, page_file.rfind('/'));
  const std::string own = page_file.substr(folder_.size() + sizeof "/window-" - 1);
  host_ = own.substr(0, own.rfind('-'));
  announced_ = false;
  // The file is there before anybody asks: a folder's missing file is what NFS remembers longest.
  const int fd = open(request_file(folder_).c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  close(fd);
  node_ = static_cast<Node*>(shared_page(node_file(folder_, host_).c_str(), true));
  return node_ != nullptr;
}

void NodeRequests::end() {
  if (!node_) return;
  if (lease_ns_) node_->lease_ns.compare_exchange_strong(lease_ns_, 0);
  forget();
}

void NodeRequests::forget() {
  if (node_) release_page(node_);
  node_ = nullptr, lease_ns_ = 0;
}

bool NodeRequests::is_mine(int64_t now_ns) {
  int64_t lease = node_->lease_ns.load();
  // One that ends later than any that was given now is of a machine that has started anew since.
  const bool taken = lease > now_ns && lease <= now_ns + kLeaseNs;
  if (taken && lease != lease_ns_) return false;
  if (!node_->lease_ns.compare_exchange_strong(lease, now_ns + kLeaseNs)) return false;
  lease_ns_ = now_ns + kLeaseNs;
  return true;
}

void NodeRequests::poll() {
  if (!node_) return;
  if (!std::exchange(announced_, true)) write_out(file_);  // so that other nodes know our rank
  const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  WindowRequest request;
  if (!is_mine(now_ns) || !read_request(folder_, request)) return;
  const bool first = node_->begun.exchange(1) == 0;
  if (first) node_->number = request.number;  // made before anybody of this node was there
  if (request.look != node_->look) node_->look_ns = now_ns;
  node_->look = request.look;
  const bool forward = request.number != node_->number;
  node_->number = request.number;
  if (forward || now_ns - node_->look_ns < kFollowNs)
    hand_on(request, forward && strncmp(request.host, host_.c_str(), sizeof request.host) != 0);
}

void NodeRequests::hand_on(const WindowRequest& request, bool forward) {
  DIR* folder = opendir(folder_.c_str());
  if (!folder) return;
  const std::string begin = "window-" + host_ + "-";
  while (const dirent* entry = readdir(folder)) {
    if (strncmp(entry->d_name, begin.c_str(), begin.size()) != 0) continue;
    const std::string pid = entry->d_name + begin.size();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return isdigit(c); })) continue;
    if (access(("/proc/" + pid).c_str(), F_OK) != 0) continue;
    const std::string file = folder_ + "/" + entry->d_name;
    auto* page = static_cast<WindowPage*>(shared_page(file.c_str(), false));
    if (!page) continue;
    if (forward && page->armed)
      request_window(*page, request.number, request.begin_step, request.step_count, request.for_ns);
    page->look = request.look;
    release_page(page);
    write_out(file);
  }
  closedir(folder);
  node_->answered = request.look;
  write_out(node_file(folder_, host_));
}

int64_t answer_of_node(const std::string& folder, const std::string& host) {
  const int fd = open(node_file(folder, host).c_str(), O_RDONLY | O_CLOEXEC);
  int64_t answered = 0;
  if (fd < 0) return 0;
  if (pread(fd, &answered, sizeof answered, 0) != ssize_t(sizeof answered)) answered = 0;
  close(fd);
  return answered;
}

int64_t look_at_nodes(const std::string& folder) {
  WindowRequest newest;
  if (!read_request(folder, newest)) memset(&newest, 0, sizeof newest);
  newest.look = number_after(newest);
  return write_request(folder, newest);
}

int64_t request_of_nodes(const std::string& folder, WindowRequest request) {
  WindowRequest newest;
  if (!read_request(folder, newest)) memset(&newest, 0, sizeof newest);
  request.look = request.number = number_after(newest);
  return write_request(folder, request);
}

}  // namespace strobe

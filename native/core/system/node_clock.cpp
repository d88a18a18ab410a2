#include "core/system/node_clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "core/system/clock.h"
#include "core/system/descriptors.h"

namespace strobe {

namespace {

constexpr int kRounds = 16;
constexpr int kTimeoutMs = 20;
constexpr int64_t kFirstPause = 1'000'000'000, kLongestPause = 60'000'000'000;

struct Question {
  char magic[4] = {'S', 'C', 'L', 'Q'};
  uint32_t number = 0;
  char proof[16];
  uint64_t unused = 0;
};
struct Answer {
  char magic[4];
  uint32_t number;
  int64_t received_ns, sent_ns;
  uint64_t unused;
};
static_assert(sizeof(Question) == 32 && sizeof(Answer) == 32);  // no answer is longer than its question

}  // namespace

std::string node_name() {
  char boot[64] = "";
  if (read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0) boot[strcspn(boot, "\n")] = 0;
  std::string name(boot);
  if (name.empty()) {
    gethostname(boot, sizeof boot - 1);
    name = boot;
  }
  struct stat times;  // containers may have a monotonic clock of their own
  if (stat("/proc/self/ns/time", &times) == 0) (name += "/") += std::to_string(times.st_ino);
  if (clock_is_shifted)
    for (const char* variable : {"STROBE_CLOCK_SHIFT_NS", "STROBE_CLOCK_DRIFT_PPM"})
      if (const char* text = getenv(variable)) (name += "+") += text;
  for (char& c : name)
    if (c == '"' || c == '\\' || c <= ' ') c = '_';
  return name;
}

WallClock wall_clock() {
  WallClock best{};
  int64_t width = INT64_MAX;
  for (int i = 0; i < 3; i++) {
    const int64_t before = monotonic_ns();
    const int64_t unix_ns = clock_ns(CLOCK_REALTIME);
    const int64_t after = monotonic_ns();
    if (after - before >= width) continue;
    width = after - before;
    best.monotonic_ns = before + width / 2, best.unix_ns = unix_ns;
  }
  timex kernel{};
  const int state = adjtimex(&kernel);  // changes nothing: no mode is set
  best.error_ns = state < 0 || state == TIME_ERROR || (kernel.status & STA_UNSYNC) ? -1 : kernel.maxerror * 1000;
  return best;
}

void NodeClock::ask(const std::string& server) {
  addresses_.clear();
  answered_ = -1;
  std::istringstream words(server);
  std::string node, address;
  if (!(words >> port_ >> proof_ >> node) || proof_.size() != 16 || node == node_name()) return;
  while (words >> address) addresses_.push_back(address);
}

void NodeClock::begin() { next_ns_ = pause_ns_ = 0; }

bool NodeClock::measure(ClockReading& reading) {
  if (addresses_.empty()) return false;
  pause_ns_ = pause_ns_ ? std::min(pause_ns_ * 2, kLongestPause) : kFirstPause;
  bool found = false;
  for (size_t i = 0; i < addresses_.size() && !found; i++)
    if ((answered_ < 0 || answered_ == int(i)) && (found = measure_at(addresses_[i], reading))) answered_ = int(i);
  next_ns_ = monotonic_ns() + pause_ns_;
  return found;
}

bool NodeClock::measure_at(const std::string& address, ClockReading& reading) const {
  sockaddr_in at{};
  at.sin_family = AF_INET, at.sin_port = htons(port_);
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) return false;
  const int low = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (low < 0) return false;
  const int fd = move_away(low);
  bool found = connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0, answers = found;
  if (found) found = false;
  Question question;
  memcpy(question.proof, proof_.data(), sizeof question.proof);
  for (int round = 0; round < kRounds && answers; round++) {
    question.number = uint32_t(round);
    const int64_t asked = monotonic_ns();
    if (send(fd, &question, sizeof question, MSG_NOSIGNAL) != ssize_t(sizeof question)) break;
    answers = false;
    while (!answers) {
      pollfd ready{fd, POLLIN, 0};
      Answer answer;
      if (poll(&ready, 1, kTimeoutMs) <= 0) break;
      const ssize_t n = recv(fd, &answer, sizeof answer, 0);
      const int64_t answered = monotonic_ns();
      if (n < 0) break;  // nobody listens
      if (n != ssize_t(sizeof answer) || memcmp(answer.magic, "SCLA", 4) || answer.number != question.number) continue;
      answers = true;
      const int64_t way = (answered - asked) - (answer.sent_ns - answer.received_ns),
                    error = std::max<int64_t>(way, 0) / 2 + 1;
      if (found && error >= reading.error_ns) continue;
      found = true;
      reading.local_ns = asked + (answered - asked) / 2;
      reading.offset_ns = ((answer.received_ns - asked) + (answer.sent_ns - answered)) / 2;
      reading.error_ns = error;
    }
  }
  close(fd);
  return found;
}

}  // namespace strobe

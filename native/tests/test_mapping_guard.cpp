// A mapped file that goes bad under the program: in a guarded mapping memory takes the place of its pages, and the
// program goes on; in any other place a SIGBUS is what it would be without us.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "core/system/mapping_guard.h"
#include "tests/check.h"

using namespace strobe;

namespace {

constexpr size_t kBytes = 4 * 4096;

// A file of four pages of 'a', 'b', 'c', 'd', and its mapping.
struct Mapped {
  Folder folder;
  std::string path = folder.path + "/file";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  char* page[4];
  Mapped() {
    for (char c = 'a'; c <= 'd'; c++) {
      const std::string text(4096, c);
      CHECK(write(fd, text.data(), text.size()) == 4096);
    }
    void* map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    for (int i = 0; i < 4; i++) page[i] = static_cast<char*>(map) + i * 4096;
  }
  ~Mapped() {
    unguard(page[0]);
    munmap(page[0], kBytes);
    close(fd);
  }
  void cut(size_t bytes) const { CHECK(ftruncate(fd, off_t(bytes)) == 0); }
};

void store(char* at, char value) { *const_cast<volatile char*>(at) = value; }

void a_file_that_is_cut_short() {
  Mapped file;
  guard(file.page[0], kBytes);
  store(file.page[1], 'B');
  CHECK(!guard_was_needed() && !guard_lost_content());
  file.cut(2 * 4096);
  errno = 77;
  store(file.page[3] + 5, 'x');
  CHECK(errno == 77);
  CHECK(guard_was_needed() && guard_lost_content());  // what was in that page is gone with the file
  CHECK(file.page[3][5] == 'x' && file.page[3][4] == 0);
  // The first page went into memory, too, with what was in it: what the rings say of themselves stays together.
  CHECK(file.page[0][0] == 'a' && file.page[0][4095] == 'a');
  store(file.page[0], 'A');
  CHECK(file.page[1][0] == 'B' && file.page[1][1] == 'b');
  std::ifstream in(file.path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  CHECK(bytes.size() == 2 * 4096 && bytes[0] == 'a' && bytes[4096] == 'B');
  guard_nothing();
  CHECK(!guard_was_needed() && !guard_lost_content());
}

// All threads meet the same page at once: none of their stores is lost.
void threads_at_once() {
  for (int round = 0; round < 20; round++) {
    Mapped file;
    guard(file.page[0], kBytes);
    file.cut(0);
    std::atomic<int> ready{0};
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++)
      all.emplace_back([&, t] {
        for (ready++; ready < 4;) {
        }
        store(file.page[2] + 100 * t, char('0' + t));
      });
    for (auto& thread : all) thread.join();
    for (int t = 0; t < 4; t++) CHECK(file.page[2][100 * t] == '0' + t);
  }
  guard_nothing();
}

// How a child ends that does this.
int ends(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    work();
    _exit(0);
  }
  return status_of(pid);
}

bool by_bus_error(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return WIFEXITED(status) ? WEXITSTATUS(status) != 0 : true;  // its own handler came before, and reports
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
#endif
}

void what_is_not_ours() {
  Mapped guarded, other;
  guard(guarded.page[0], kBytes);
  guarded.cut(0), other.cut(0);
  CHECK(by_bus_error(ends([&] { store(other.page[0], 'x'); })));
  CHECK(ends([&] { store(guarded.page[3], 'x'); }) == 0);
  CHECK(by_bus_error(ends([&] { unguard(guarded.page[0]), store(guarded.page[3], 'x'); })));
  // A signal that somebody sends is no bad page.
  CHECK(by_bus_error(ends([] { raise(SIGBUS); })));
  // A mapping that is guarded later takes the place of one that is no longer.
  CHECK(ends([&] {
          unguard(guarded.page[0]), guard(other.page[0], kBytes);
          store(other.page[2], 'x');
        }) == 0);
}

sigjmp_buf back;
std::atomic<int> handled{0};
void* handled_at;
void plain(int) { handled++, siglongjmp(back, 1); }
void with_info(int, siginfo_t* info, void*) { handled++, handled_at = info->si_addr, siglongjmp(back, 1); }

// Before the first guard, so that ours is put in around it: each kind of handler in a process of its own.
void of_the_program() {
  CHECK(ends([] {
          signal(SIGBUS, plain);
          Mapped guarded, other;
          guard(guarded.page[0], kBytes);
          guarded.cut(0), other.cut(0);
          store(guarded.page[1], 'x');
          CHECK(handled == 0);
          if (!sigsetjmp(back, 1)) store(other.page[1], 'x'), abort();
          CHECK(handled == 1);
        }) == 0);
  CHECK(ends([] {
          struct sigaction action{};
          action.sa_sigaction = with_info, action.sa_flags = SA_SIGINFO;
          sigaction(SIGBUS, &action, nullptr);
          Mapped guarded, other;
          guard(guarded.page[0], kBytes);
          guarded.cut(0), other.cut(0);
          store(guarded.page[1], 'x');
          if (!sigsetjmp(back, 1)) store(other.page[1] + 9, 'x'), abort();
          CHECK(handled == 1 && handled_at == other.page[1] + 9);
        }) == 0);
  CHECK(ends([] {
          signal(SIGBUS, SIG_IGN);
          Mapped guarded;
          guard(guarded.page[0], kBytes);
          raise(SIGBUS);
          guarded.cut(0);
          store(guarded.page[1], 'x');
        }) == 0);
}

}  // namespace

int main() {
  of_the_program();
  a_file_that_is_cut_short();
  threads_at_once();
  what_is_not_ours();
}

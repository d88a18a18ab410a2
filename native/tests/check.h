// check.h - the little that the tests need: a check that says where and what, a folder of their own, a reader.
#pragma once
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "include/strobe.h"
#include "kernels/reading/process_file.h"

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                      \
    }                                                                               \
  } while (0)

// How many of `all` random cases run: each is slow under a sanitizer. The plain run has them all.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t cases(uint32_t all) { return all / 5; }
#else
constexpr uint32_t cases(uint32_t all) { return all; }
#endif

struct Folder {
  std::string path;
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strobe-test-XXXXXX").string();
    CHECK(mkdtemp(pattern.data()));
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::vector<std::string> files(const std::string& suffix) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == suffix) found.push_back(entry.path().string());
    return found;
  }
};

// `options` without a folder.
inline void start(const Folder& folder, strobe_options options = {}) {
  options.folder = folder.path.c_str();
  options.description = "{}";
  CHECK(strobe_start(&options) == 0);
}

// Zeroes that forked children write for us to read. Kept until the end.
template <class T>
T* shared_with_children() {
  void* map = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(map != MAP_FAILED);
  return static_cast<T*>(map);
}

// How a child ended, as waitpid tells it.
inline int status_of(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

inline uint32_t region(const char* name) {
  strobe_region_info info{};
  info.name = name;
  info.paradigm = STROBE_USER;
  info.role = STROBE_ROLE_RANGE;
  return strobe_region(&info);
}

// Opens a block file together with the rings beside it, as a reader of a killed process does.
inline std::unique_ptr<strobe::ProcessFile> open_process(const std::string& blocks) {
  std::string rings = blocks.substr(0, blocks.size() - 7) + ".rings";
  return std::make_unique<strobe::ProcessFile>(blocks, access(rings.c_str(), R_OK) == 0 ? rings : "");
}

inline strobe::Spans all_spans(const strobe::ProcessFile& file, uint32_t location) {
  strobe::Spans spans;
  file.spans(location, INT64_MIN, INT64_MAX, spans);
  return spans;
}

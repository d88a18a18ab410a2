#include "core/session/interpreter_names.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/session/session.h"
#include "core/system/threads.h"

using namespace strobe;

void strobe_name_interpreter(int64_t interpreter) {
  if (thread_id() == uint64_t(getpid())) return;
  char system[32] = "";
  pthread_getname_np(pthread_self(), system, sizeof system);
  std::string name = producer.name ? producer.name : system;
  name.resize(std::min(name.size(), name.find(" (interpreter ")));  // one that it ran before
  session().name_thread((name + " (interpreter " + std::to_string(interpreter) + ")").c_str());
}

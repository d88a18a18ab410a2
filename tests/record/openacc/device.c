// A runtime of OpenACC with a device, and its program: it loads the libraries of ACC_PROFLIB and reports what NVIDIA's
// does for an asynchronous kernel in each of 20 steps, with names, lines and bytes. Nothing is computed.
#include <acc_prof.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct {
  acc_event_t event;
  acc_prof_callback callback;
} handlers[256];
static size_t count;

static void add(acc_event_t event, acc_prof_callback callback, acc_register_t toggle) {
  (void)toggle;
  handlers[count].event = event, handlers[count++].callback = callback;
}

static void report(acc_event_t type, acc_construct_t parent, const char* name, size_t bytes, int line) {
  acc_prof_info info = {type, sizeof info, 201711, acc_device_nvidia, 1, 0, 2, 2, "saxpy.c", "main", line, line, 1, 99};
  acc_event_info event;
  acc_api_info api = {acc_device_api_other, sizeof api, acc_device_nvidia, 0, NULL, NULL, NULL};
  memset(&event, 0, sizeof event);
  event.data_event = (acc_data_event_info){type, sizeof event.data_event, parent, 0, NULL, name, bytes, NULL, NULL};
  if (type == acc_ev_enqueue_launch_start || type == acc_ev_enqueue_launch_end)
    event.launch_event =
        (acc_launch_event_info){type, sizeof event.launch_event, parent, 0, NULL, name, 8, 4, 32};
  for (size_t i = 0; i < count; i++)
    if (handlers[i].event == type) handlers[i].callback(&info, &event, &api);
}

static void both(acc_event_t start, acc_construct_t parent, const char* name, size_t bytes, int line) {
  report(start, parent, name, bytes, line);
  report(start + 1, parent, name, bytes, line);
}

int main(void) {
  char* libraries = strdup(getenv("ACC_PROFLIB") ? getenv("ACC_PROFLIB") : "");
  for (char* each = strtok(libraries, ";"); each; each = strtok(NULL, ";")) {
    void* library = dlopen(each, RTLD_NOW);
    void (*begin)(acc_prof_reg, acc_prof_reg, acc_prof_lookup_func) = NULL;
    if (library) *(void**)&begin = dlsym(library, "acc_register_library");
    if (begin) begin(add, NULL, NULL);
  }
  for (int step = 0; step < 20; step++) {
    report(acc_ev_compute_construct_start, acc_construct_parallel, NULL, 0, 12);
    report(acc_ev_enter_data_start, acc_construct_parallel, NULL, 0, 12);
    both(acc_ev_enqueue_upload_start, acc_construct_parallel, "x", 4096, 12);
    both(acc_ev_enqueue_upload_start, acc_construct_parallel, "y", 100 + step, 12);
    report(acc_ev_enter_data_end, acc_construct_parallel, NULL, 0, 12);
    both(acc_ev_enqueue_launch_start, acc_construct_parallel, step % 2 ? "saxpy" : "saxpy_odd", 0, 14);
    report(acc_ev_compute_construct_end, acc_construct_parallel, NULL, 0, 12);
    report(acc_ev_update_start, acc_construct_update, NULL, 0, 20);
    both(acc_ev_enqueue_download_start, acc_construct_update, "y", 2048, 20);
    both(acc_ev_wait_start, acc_construct_update, NULL, 0, 20);
    report(acc_ev_update_end, acc_construct_update, NULL, 0, 20);
  }
  return 7;
}

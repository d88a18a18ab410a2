// launches.c - a program that makes a GPU work and says what it did, by the driver alone: no CUDA is needed to build
// it.
//
//   launches work [IDLE_MS]  copies, sets, kernels on two threads and streams, a graph; one JSON line for each call
//   launches empty N         N launches of an empty kernel; ns that one took the calling thread
//   launches graph N         N launches of a graph with 200 empty kernels; ns that one took, and the GPU's free memory
//   launches forever         until it is killed; a line for every 100 kernels that are over, 2500 a second at most
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// empty() and spin(unsigned long): as the compiler mangles them.
static const char kModule[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry _Z5emptyv() { ret; }\n"
    ".visible .entry _Z4spinm(.param .u64 cycles) {\n"
    "  .reg .pred %p;\n  .reg .u64 %all, %begin, %now, %gone;\n"
    "  ld.param.u64 %all, [cycles];\n  mov.u64 %begin, %clock64;\n"
    "again:\n  mov.u64 %now, %clock64;\n  sub.u64 %gone, %now, %begin;\n"
    "  setp.lt.u64 %p, %gone, %all;\n  @%p bra again;\n  ret;\n}\n";

typedef void* Any;
static int (*Init)(unsigned), (*Retain)(Any*, int), (*SetCurrent)(Any), (*Load)(Any*, const void*);
static int (*GetFunction)(Any*, Any, const char*), (*Wait)(void), (*StreamWait)(Any), (*NewStream)(Any*, unsigned);
static int (*Launch)(Any, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Any, Any*, Any*);
static int (*Allocate)(uint64_t*, size_t), (*ToDevice)(uint64_t, const void*, size_t, Any);
static int (*ToHost)(void*, uint64_t, size_t, Any), (*OnDevice)(uint64_t, uint64_t, size_t, Any);
static int (*Set)(uint64_t, unsigned char, size_t, Any), (*BeginCapture)(Any, int), (*EndCapture)(Any, Any*);
static int (*Instantiate)(Any*, Any, unsigned long long), (*LaunchGraph)(Any, Any), (*Free)(size_t*, size_t*);
static Any context, empty, spin;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void check(int code, const char* what) {
  if (!code) return;
  fprintf(stderr, "%s: the driver says %d\n", what, code);
  exit(1);
}

static void look_up(void* to, Any library, const char* name) {
  Any found = dlsym(library, name);
  if (!found) fprintf(stderr, "the driver has no %s\n", name), exit(1);
  memcpy(to, &found, sizeof found);
}

static void start(void) {
  Any cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) fprintf(stderr, "%s\n", dlerror()), exit(1);
  look_up(&Init, cuda, "cuInit"), look_up(&Retain, cuda, "cuDevicePrimaryCtxRetain");
  look_up(&SetCurrent, cuda, "cuCtxSetCurrent"), look_up(&Load, cuda, "cuModuleLoadData");
  look_up(&GetFunction, cuda, "cuModuleGetFunction"), look_up(&Wait, cuda, "cuCtxSynchronize");
  look_up(&StreamWait, cuda, "cuStreamSynchronize"), look_up(&NewStream, cuda, "cuStreamCreate");
  look_up(&Launch, cuda, "cuLaunchKernel"), look_up(&Allocate, cuda, "cuMemAlloc_v2");
  look_up(&ToDevice, cuda, "cuMemcpyHtoDAsync_v2"), look_up(&ToHost, cuda, "cuMemcpyDtoHAsync_v2");
  look_up(&OnDevice, cuda, "cuMemcpyDtoDAsync_v2"), look_up(&Set, cuda, "cuMemsetD8Async");
  look_up(&BeginCapture, cuda, "cuStreamBeginCapture_v2"), look_up(&EndCapture, cuda, "cuStreamEndCapture");
  look_up(&Instantiate, cuda, "cuGraphInstantiateWithFlags"), look_up(&LaunchGraph, cuda, "cuGraphLaunch");
  Any info = dlsym(cuda, "cuMemGetInfo_v2");
  memcpy(&Free, &info, sizeof info);
  Any module;
  check(Init(0), "cuInit"), check(Retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(SetCurrent(context), "cuCtxSetCurrent"), check(Load(&module, kModule), "cuModuleLoadData");
  check(GetFunction(&empty, module, "_Z5emptyv"), "empty"), check(GetFunction(&spin, module, "_Z4spinm"), "spin");
}

static void say(const char* what, const char* name, int64_t before, int64_t after, int64_t over) {
  pthread_mutex_lock(&output);
  printf(
      "{\"what\": \"%s\", \"name\": \"%s\", \"thread\": %ld, \"before_ns\": %lld, \"after_ns\": %lld, \"over_ns\": "
      "%lld}\n",
      what, name, (long)syscall(SYS_gettid), (long long)before, (long long)after, (long long)over);
  pthread_mutex_unlock(&output);
}

static void run(Any function, const char* name, unsigned blocks, Any stream, uint64_t cycles, int waits) {
  Any parameters[1] = {&cycles};
  const int64_t before = now();
  check(Launch(function, blocks, 1, 1, 64, 1, 1, 0, stream, function == spin ? parameters : NULL, NULL), name);
  const int64_t after = now();
  if (waits) check(StreamWait(stream), "cuStreamSynchronize");
  say("kernel", name, before, after, waits ? now() : 0);
}

static void* second_thread(void* unused) {
  (void)unused;
  check(SetCurrent(context), "cuCtxSetCurrent");
  Any stream;
  check(NewStream(&stream, 1), "cuStreamCreate");
  for (int i = 0; i < 100; i++) run(spin, "spin(unsigned long)", 2, stream, 20000, i % 10 == 0);
  check(StreamWait(stream), "cuStreamSynchronize");
  return NULL;
}

static Any captured(Any stream, int kernels) {
  Any graph, executable;
  check(BeginCapture(stream, 1), "cuStreamBeginCapture");  // 1: of this thread only
  for (int i = 0; i < kernels; i++) check(Launch(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), "empty");
  check(EndCapture(stream, &graph), "cuStreamEndCapture");
  check(Instantiate(&executable, graph, 0), "cuGraphInstantiate");
  return executable;
}

static void work(int idle_ms) {
  const size_t bytes = 1 << 20;
  void* host = calloc(1, bytes);
  uint64_t a, b;
  Any stream;
  check(Allocate(&a, bytes), "cuMemAlloc"), check(Allocate(&b, bytes), "cuMemAlloc");
  check(NewStream(&stream, 1), "cuStreamCreate");
  pthread_t second;
  pthread_create(&second, NULL, second_thread, NULL);
  int64_t before;
  for (int i = 0; i < 100; i++) {
    run(empty, "empty()", 1, stream, 0, 1);
    run(spin, "spin(unsigned long)", 4, stream, 100000, 1);
    run(empty, "empty()", 8, NULL, 0, 0);
  }
  for (int i = 0; i < 20; i++) {
    before = now(), check(ToDevice(a, host, bytes, stream), "HtoD"), say("copy", "HtoD", before, now(), 0);
    before = now(), check(OnDevice(b, a, bytes, stream), "DtoD"), say("copy", "DtoD", before, now(), 0);
    before = now(), check(Set(a, 7, bytes, stream), "memset"), say("set", "memset", before, now(), 0);
    before = now(), check(ToHost(host, b, bytes, stream), "DtoH"), say("copy", "DtoH", before, now(), 0);
  }
  check(StreamWait(stream), "cuStreamSynchronize");
  Any executable = captured(stream, 10);
  for (int i = 0; i < 20; i++)
    before = now(), check(LaunchGraph(executable, stream), "cuGraphLaunch"), say("graph", "10", before, now(), 0);
  pthread_join(second, NULL);
  check(Wait(), "cuCtxSynchronize");
  usleep(1000 * (useconds_t)idle_ms);
}

static size_t free_bytes(void) {
  size_t left = 0, all = 0;
  if (Free) check(Free(&left, &all), "cuMemGetInfo");
  return left;
}

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  const int n = count > 2 ? atoi(words[2]) : 0;
  start();
  if (!strcmp(what, "work")) return work(n), 0;
  if (!strcmp(what, "forever"))
    for (long made = 0;; made += 100) {
      for (int i = 0; i < 100; i++) check(Launch(empty, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "empty");
      check(Wait(), "cuCtxSynchronize");
      printf("%ld\n", made + 100), fflush(stdout);
      usleep(40000);
    }
  Any stream, executable = NULL;
  const int graph = !strcmp(what, "graph");
  if (!graph && strcmp(what, "empty")) return fprintf(stderr, "launches work|empty|graph|forever [N]\n"), 2;
  check(NewStream(&stream, 1), "cuStreamCreate");
  if (graph) executable = captured(stream, 200);
  const size_t before = free_bytes();
  const int warm = n / 10 + 1;
  int64_t began = 0;
  for (int i = 0; i < warm + n; i++) {
    if (i == warm) check(Wait(), "cuCtxSynchronize"), began = now();
    check(graph ? LaunchGraph(executable, stream) : Launch(empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL), what);
  }
  const int64_t launched = now();
  check(Wait(), "cuCtxSynchronize");
  const int64_t over = now();
  printf("{\"launches\": %d, \"launch_ns\": %.1f, \"whole_ns\": %.1f, \"memory_lost_bytes\": %lld}\n", warm + n,
         (double)(launched - began) / n, (double)(over - began) / n, (long long)before - (long long)free_bytes());
  return 0;
}

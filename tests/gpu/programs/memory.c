// memory.c - a program that allocates GPU memory in every way and lets streams wait for each other's events, by the
// driver alone: no CUDA is needed to build it. One JSON line for each allocation, release, migration and wait.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kModule[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry _Z5emptyv() { ret; }\n";

typedef void* Any;
static Any cuda;

static void check(int code, const char* what) {
  if (!code) return;
  fprintf(stderr, "%s: the driver says %d\n", what, code);
  exit(1);
}

static Any function(const char* name) {
  Any found = dlsym(cuda, name);
  if (!found) fprintf(stderr, "the driver has no %s\n", name), exit(1);
  return found;
}

// What every function here takes: up to eleven numbers and addresses.
typedef int (*Call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                    uint64_t);
#define CALL(name, ...) call(name, (uint64_t[11]){__VA_ARGS__})
static void call(const char* name, const uint64_t* a) {
  check(((Call)function(name))(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10]), name);
}
#define AT(variable) ((uint64_t)(uintptr_t)(variable))

static uint64_t allocated(const char* name, const char* kind, uint64_t bytes, uint64_t third, uint64_t fourth) {
  uint64_t address = 0;
  CALL(name, AT(&address), bytes, third, fourth);
  printf("{\"what\": \"allocation\", \"kind\": \"%s\", \"address\": %llu, \"bytes\": %llu}\n", kind,
         (unsigned long long)address, (unsigned long long)bytes);
  return address;
}

static void released(const char* name, uint64_t address, uint64_t stream) {
  CALL(name, address, stream);
  printf("{\"what\": \"release\", \"address\": %llu}\n", (unsigned long long)address);
}

static void migrated(uint64_t address, uint64_t bytes, int device, uint64_t stream) {
  CALL("cuMemPrefetchAsync", address, bytes, (uint64_t)(int64_t)device, stream);
  printf("{\"what\": \"migration\", \"to\": %d, \"bytes\": %llu}\n", device, (unsigned long long)bytes);
  CALL("cuStreamSynchronize", stream);
}

int main(void) {
  cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) return fprintf(stderr, "%s\n", dlerror()), 1;
  uint64_t context = 0, module = 0, empty = 0, stream[2] = {0}, event = 0, pool = 0;
  CALL("cuInit", 0), CALL("cuDevicePrimaryCtxRetain", AT(&context), 0), CALL("cuCtxSetCurrent", context);
  CALL("cuModuleLoadData", AT(&module), AT(kModule)), CALL("cuModuleGetFunction", AT(&empty), module, AT("_Z5emptyv"));
  for (int i = 0; i < 2; i++) CALL("cuStreamCreate", AT(&stream[i]), 1);

  const uint64_t device = allocated("cuMemAlloc_v2", "Device", 3 << 20, 0, 0);
  const uint64_t host = allocated("cuMemAllocHost_v2", "Pinned", 1 << 20, 0, 0);
  const uint64_t managed = allocated("cuMemAllocManaged", "Managed", 4 << 20, 1, 0);
  const uint64_t from_default = allocated("cuMemAllocAsync", "Device", 5 << 20, stream[0], 0);
  int32_t properties[64] = {1, 0, 1, 0};  // CUmemPoolProps: pinned, no handles to share, of device 0
  CALL("cuMemPoolCreate", AT(&pool), AT(properties));
  const uint64_t from_pool = allocated("cuMemAllocFromPoolAsync", "Device", 6 << 20, pool, stream[0]);
  usleep(300000);  // until CUPTI was asked for unified memory
  migrated(managed, 4 << 20, 0, stream[0]);
  migrated(managed, 4 << 20, -1, stream[0]);

  CALL("cuEventCreate", AT(&event), 2);  // 2: without time
  for (int i = 0; i < 200; i++) {
    const int from = i % 2;
    CALL("cuLaunchKernel", empty, 1, 1, 1, 32, 1, 1, 0, stream[from], 0, 0);
    CALL("cuEventRecord", event, stream[from]);
    CALL("cuStreamWaitEvent", stream[!from], event, 0);
    CALL("cuLaunchKernel", empty, 1, 1, 1, 32, 1, 1, 0, stream[!from], 0, 0);
    printf("{\"what\": \"wait\"}\n");
  }
  CALL("cuEventSynchronize", event);
  released("cuMemFreeAsync", from_pool, stream[0]), released("cuMemFreeAsync", from_default, stream[0]);
  CALL("cuStreamSynchronize", stream[0]);
  CALL("cuMemPoolTrimTo", pool, 0), CALL("cuMemPoolDestroy", pool);
  released("cuMemFree_v2", device, 0), released("cuMemFree_v2", managed, 0), released("cuMemFreeHost", host, 0);
  CALL("cuCtxSynchronize", 0);
  return 0;
}

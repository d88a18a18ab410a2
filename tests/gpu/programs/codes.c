// codes.c - what each of CUPTI's functions returns here and now: before the driver is initialised, inside of that, and
// afterwards. The library is its own injection library. `table(PHASE)` appends a JSON line to $CODES_OUT; CUPTI is
// the file $CODES_CUPTI.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*Function)();

static uint64_t clock_of_ours(void) { return 1; }
static void requested(uint8_t** buffer, size_t* bytes, size_t* records) { *buffer = NULL, *bytes = *records = 0; }
static void completed(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid) {}
static void called(void* user, int domain, uint32_t cbid, const void* data) {}

static FILE* out;
static int first;

static void line(const char* name, int code) {
  fprintf(out, "%s\"%s\": %d", first ? "" : ", ", name, code);
  first = 0;
}

__attribute__((visibility("default"))) int table(const char* phase) {
  void* cupti = dlopen(getenv("CODES_CUPTI"), RTLD_NOW);
  if (!cupti) return 1;
  out = fopen(getenv("CODES_OUT"), "a");
  if (!out) return 1;
  first = 1;
  fprintf(out, "{\"phase\": \"%s\", \"codes\": {", phase);
#define TRY(name, ...)                                        \
  do {                                                        \
    Function f = (Function)dlsym(cupti, "cupti" #name);       \
    line(#name, f ? f(__VA_ARGS__) : -1); /* -1: not there */ \
  } while (0)
  uint32_t version = 0;
  uint64_t time = 0;
  size_t size = 1, dropped = 0;
  uint8_t zeroed = 1;
  const char* text = NULL;
  void* subscriber = NULL;
  TRY(GetVersion, &version);
  TRY(GetResultString, 15, &text);
  TRY(GetTimestamp, &time);
  TRY(GetCallbackName, 2, 211, &text);
  TRY(Subscribe, &subscriber, called, NULL);
  TRY(SetThreadIdType, 1);
  TRY(ActivitySetAttribute, 5, &size, &zeroed);
  TRY(ActivityRegisterTimestampCallback, clock_of_ours);
  TRY(ActivityRegisterCallbacks, requested, completed);
  const int kinds[] = {1, 2, 8, 9, 10, 17, 22, 37};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char name[32];
    snprintf(name, sizeof name, "ActivityEnable %d", kinds[i]);
    Function f = (Function)dlsym(cupti, "cuptiActivityEnable");
    line(name, f ? f(kinds[i]) : -1);
  }
  TRY(ActivityFlushAll, 0);
  TRY(ActivityGetNumDroppedRecords, NULL, 0, &dropped);
  // Sizes of records, asked of the library's own iterator: a buffer where every number is the kind.
  fprintf(out, "}, \"version\": %u, \"sizes\": {", version);
  static uint8_t buffer[4096] __attribute__((aligned(8)));
  int (*next)(uint8_t*, size_t, uint8_t**) =
      (int (*)(uint8_t*, size_t, uint8_t**))dlsym(cupti, "cuptiActivityGetNextRecord");
  first = 1;
  for (uint32_t kind = 1; next && kind < 60; kind++) {
    for (size_t i = 0; i < sizeof buffer; i += 4) memcpy(buffer + i, &kind, 4);
    uint8_t* record = NULL;
    if (next(buffer, sizeof buffer, &record) || !record) continue;
    uint8_t* before = record;
    if (next(buffer, sizeof buffer, &record)) continue;
    char name[16];
    snprintf(name, sizeof name, "%u", kind);
    line(name, (int)(record - before));
  }
  fprintf(out, "}}\n");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    Function f = (Function)dlsym(cupti, "cuptiActivityDisable");
    if (f) f(kinds[i]);
  }
  Function leave = (Function)dlsym(cupti, "cuptiUnsubscribe");
  if (leave && subscriber) leave(subscriber);
  fclose(out);
  return 0;
}

__attribute__((visibility("default"))) int InitializeInjection(void) {
  table("injection");
  return 1;
}

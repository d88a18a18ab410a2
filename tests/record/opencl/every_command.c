// Commands of every kind, none of which asks for an event. OpenCL's headers are not needed.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void* handle;
int clGetPlatformIDs(unsigned, handle*, unsigned*);
int clGetDeviceIDs(handle, uint64_t, unsigned, handle*, unsigned*);
handle clCreateContext(const intptr_t*, unsigned, const handle*, void*, void*, int*);
handle clCreateCommandQueue(handle, handle, uint64_t, int*);
handle clCreateCommandQueueWithProperties(handle, handle, const uint64_t*, int*);
handle clCreateBuffer(handle, uint64_t, size_t, void*, int*);
typedef struct { unsigned order, type; } format;
typedef struct { unsigned type; size_t width, height, depth, array, row, slice; unsigned levels, samples; handle memory; } shape;
handle clCreateImage(handle, uint64_t, const format*, const shape*, void*, int*);
handle clCreateProgramWithSource(handle, unsigned, const char**, const size_t*, int*);
int clBuildProgram(handle, unsigned, const handle*, const char*, void*, void*);
handle clCreateKernel(handle, const char*, int*);
int clSetKernelArg(handle, unsigned, size_t, const void*);
int clEnqueueNDRangeKernel(handle, handle, unsigned, const size_t*, const size_t*, const size_t*, unsigned, const handle*, handle*);
int clEnqueueWriteBuffer(handle, handle, unsigned, size_t, size_t, const void*, unsigned, const handle*, handle*);
int clEnqueueReadBufferRect(handle, handle, unsigned, const size_t*, const size_t*, const size_t*, size_t, size_t, size_t, size_t, void*, unsigned, const handle*, handle*);
int clEnqueueWriteImage(handle, handle, unsigned, const size_t*, const size_t*, size_t, size_t, const void*, unsigned, const handle*, handle*);
int clEnqueueFillBuffer(handle, handle, const void*, size_t, size_t, size_t, unsigned, const handle*, handle*);
int clEnqueueCopyBuffer(handle, handle, handle, size_t, size_t, size_t, unsigned, const handle*, handle*);
void* clEnqueueMapBuffer(handle, handle, unsigned, uint64_t, size_t, size_t, unsigned, const handle*, handle*, int*);
int clEnqueueUnmapMemObject(handle, handle, void*, unsigned, const handle*, handle*);
int clFinish(handle);

static void must(int error, const char* what) {
  if (error) printf("%s: %d\n", what, error);
}

int main(void) {
  handle platform, device;
  int error;
  must(clGetPlatformIDs(1, &platform, NULL), "platform");
  must(clGetDeviceIDs(platform, 0xFFFFFFFF, 1, &device, NULL), "device");
  handle context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  handle first = clCreateCommandQueue(context, device, 0, &error);
  const uint64_t properties[] = {0x1093, 0, 0};  // CL_QUEUE_PROPERTIES
  handle second = clCreateCommandQueueWithProperties(context, device, properties, &error);
  handle a = clCreateBuffer(context, 1, 4096, NULL, &error), b = clCreateBuffer(context, 1, 4096, NULL, &error);
  const char* source = "__kernel void twice(__global float* a) { a[get_global_id(1) * 32 + get_global_id(0)] *= 2; }";
  handle program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
  must(clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
  handle twice = clCreateKernel(program, "twice", &error);
  clSetKernelArg(twice, 0, sizeof a, &a);
  static float host[1024];
  for (int i = 0; i < 1024; i++) host[i] = 1;
  must(clEnqueueWriteBuffer(first, a, 1, 0, 4096, host, 0, NULL, NULL), "write");
  const size_t global[] = {32, 32}, local[] = {16, 4};
  for (int i = 0; i < 5; i++) must(clEnqueueNDRangeKernel(first, twice, 2, NULL, global, local, 0, NULL, NULL), "kernel");
  must(clFinish(first), "finish");
  const float zero = 0;
  must(clEnqueueFillBuffer(second, b, &zero, sizeof zero, 0, 2048, 0, NULL, NULL), "fill");
  must(clEnqueueCopyBuffer(second, a, b, 0, 0, 1000, 0, NULL, NULL), "copy");
  // 8 bytes of each of 4 rows.
  const size_t origin[] = {0, 0, 0}, box[] = {8, 4, 1};
  must(clEnqueueReadBufferRect(second, a, 1, origin, origin, box, 64, 0, 64, 0, host, 0, NULL, NULL), "rectangle");
  void* map = clEnqueueMapBuffer(second, b, 1, 1 | 2, 0, 512, 0, NULL, NULL, NULL);
  printf("%g\n", ((float*)map)[0]);
  must(clEnqueueUnmapMemObject(second, b, map, 0, NULL, NULL), "unmap");
  const format rgba = {0x10B5, 0x10DE};  // four floats
  const shape square = {0x10F1, 8, 8, 0, 0, 0, 0, 0, 0, NULL};
  handle image = clCreateImage(context, 1, &rgba, &square, NULL, &error);
  must(error, "image");
  const size_t pixels[] = {8, 2, 1};
  must(clEnqueueWriteImage(second, image, 1, origin, pixels, 0, 0, host, 0, NULL, NULL), "write image");
  must(clFinish(second), "finish");
  must(clEnqueueCopyBuffer(second, a, b, 0, 0, 8192, 0, NULL, NULL), "too much");
  return 7;
}

// functions.h - the functions of OpenCL that are recorded or asked, and the numbers of cl.h that this needs. Nobody's
// headers are needed: every argument is an integer or a pointer, which one register or one stack slot holds (x86-64,
// AArch64).
#pragma once
#include <stdint.h>

namespace strobe::opencl {

using Word = intptr_t;  // an argument, whatever its type

// What an argument has of the bytes of a command: all of them, three factors, or three factors in pixels of an image.
enum Size : uint8_t { kNone, kBytes, kBox, kPixels };

// X(name, entry of cl_icd_dispatch in cl_icd.h, arguments, What, Size, argument with the size, argument with the image)
// The queue comes first, the event last, but before the error of those that return a pointer.
#define OPENCL_COMMANDS(X)                                   \
  X(clEnqueueNDRangeKernel, 59, 9, kKernel, kNone, 0, 0)     \
  X(clEnqueueTask, 60, 5, kKernel, kNone, 0, 0)              \
  X(clEnqueueReadBuffer, 48, 9, kDtoH, kBytes, 4, 0)         \
  X(clEnqueueWriteBuffer, 49, 9, kHtoD, kBytes, 4, 0)        \
  X(clEnqueueCopyBuffer, 50, 9, kDtoD, kBytes, 5, 0)         \
  X(clEnqueueReadBufferRect, 86, 14, kDtoH, kBox, 5, 0)      \
  X(clEnqueueWriteBufferRect, 87, 14, kHtoD, kBox, 5, 0)     \
  X(clEnqueueCopyBufferRect, 88, 13, kDtoD, kBox, 5, 0)      \
  X(clEnqueueReadImage, 51, 11, kDtoH, kPixels, 4, 1)        \
  X(clEnqueueWriteImage, 52, 11, kHtoD, kPixels, 4, 1)       \
  X(clEnqueueCopyImage, 53, 9, kDtoD, kPixels, 5, 1)         \
  X(clEnqueueCopyImageToBuffer, 54, 9, kDtoD, kPixels, 4, 1) \
  X(clEnqueueCopyBufferToImage, 55, 9, kDtoD, kPixels, 5, 2) \
  X(clEnqueueFillBuffer, 102, 9, kSet, kBytes, 5, 0)         \
  X(clEnqueueFillImage, 103, 8, kSet, kPixels, 4, 1)         \
  X(clEnqueueSVMMemcpy, 129, 8, kShared, kBytes, 4, 0)       \
  X(clEnqueueSVMMemFill, 130, 8, kSet, kBytes, 4, 0)         \
  X(clEnqueueMapBuffer, 56, 10, kMap, kBytes, 5, 0)          \
  X(clEnqueueMapImage, 57, 12, kMap, kPixels, 5, 1)          \
  X(clEnqueueUnmapMemObject, 58, 6, kUnmap, kNone, 0, 0)
// X(name, entry, arguments, role): nothing is queued by them.
#define OPENCL_CALLS(X)                \
  X(clFinish, 47, 1, SYNC)             \
  X(clWaitForEvents, 41, 2, SYNC)      \
  X(clFlush, 46, 1, FUNCTION)          \
  X(clBuildProgram, 30, 6, FUNCTION)   \
  X(clCompileProgram, 98, 9, FUNCTION) \
  X(clLinkProgram, kLinkProgram, 9, FUNCTION)

enum Entry : uint32_t {
  kGetDeviceInfo = 3,
  kCreateQueue = 9,
  kGetQueueInfo = 12,
  kGetImageInfo = 21,
  kGetKernelInfo = 39,
  kGetEventInfo = 42,
  kRetainEvent = 43,
  kReleaseEvent = 44,
  kGetProfilingInfo = 45,
  kLinkProgram = 99,
  kCreateQueueWithProperties = 123,
};
enum Info : uint32_t {
  kDeviceName = 0x102B,
  kQueueContext = 0x1090,
  kQueueDevice = 0x1091,
  kQueueProperties = 0x1093,
  kImageElementSize = 0x1111,
  kKernelFunctionName = 0x1190,
  kEventStatus = 0x11D3,
  kQueued = 0x1280,
  kStart = 0x1282,
  kEnd = 0x1283,
};
constexpr Word kProfiling = 2, kOnDevice = 4;     // properties of queues
constexpr Word kWrite = 2, kWriteInvalidate = 4;  // flags of maps
constexpr int32_t kInvalidValue = -30;

}  // namespace strobe::opencl

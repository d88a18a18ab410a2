"""Names of CUDA calls by the numbers that CUPTI gives them: those that programs use; the numbers never change."""

from __future__ import annotations


def _named(text: str) -> dict[int, str]:
    words = text.split()
    return {int(number): name for number, name in zip(words[::2], words[1::2], strict=True)}


# cupti_runtime_cbid.h of CUPTI 12.9, without the versions behind the names.
RUNTIME_CALLS = _named(
    """
    1 cudaDriverGetVersion 2 cudaRuntimeGetVersion 3 cudaGetDeviceCount 4 cudaGetDeviceProperties 5 cudaChooseDevice
    8 cudaConfigureCall 9 cudaSetupArgument 10 cudaGetLastError 11 cudaPeekAtLastError 12 cudaGetErrorString 13
    cudaLaunch 14 cudaFuncSetCacheConfig 15 cudaFuncGetAttributes 16 cudaSetDevice 17 cudaGetDevice 19
    cudaSetDeviceFlags 20 cudaMalloc 21 cudaMallocPitch 22 cudaFree 23 cudaMallocArray 24 cudaFreeArray 25
    cudaMallocHost 26 cudaFreeHost 27 cudaHostAlloc 28 cudaHostGetDevicePointer 29 cudaHostGetFlags 30
    cudaMemGetInfo 31 cudaMemcpy 32 cudaMemcpy2D 33 cudaMemcpyToArray 37 cudaMemcpyArrayToArray 39
    cudaMemcpyToSymbol 40 cudaMemcpyFromSymbol 41 cudaMemcpyAsync 44 cudaMemcpy2DAsync 47 cudaMemcpyToSymbolAsync 49
    cudaMemset 50 cudaMemset2D 51 cudaMemsetAsync 55 cudaBindTexture 123 cudaThreadExit 126 cudaThreadSynchronize
    129 cudaStreamCreate 130 cudaStreamDestroy 131 cudaStreamSynchronize 132 cudaStreamQuery 133 cudaEventCreate 134
    cudaEventCreateWithFlags 135 cudaEventRecord 136 cudaEventDestroy 137 cudaEventSynchronize 138 cudaEventQuery
    139 cudaEventElapsedTime 140 cudaMalloc3D 144 cudaMemcpy3D 147 cudaStreamWaitEvent 151 cudaPointerGetAttributes
    152 cudaHostRegister 153 cudaHostUnregister 154 cudaDeviceCanAccessPeer 155 cudaDeviceEnablePeerAccess 160
    cudaMemcpyPeer 161 cudaMemcpyPeerAsync 164 cudaDeviceReset 165 cudaDeviceSynchronize 166 cudaDeviceGetLimit 167
    cudaDeviceSetLimit 169 cudaDeviceSetCacheConfig 171 cudaProfilerStart 172 cudaProfilerStop 177
    cudaIpcOpenEventHandle 178 cudaIpcGetMemHandle 179 cudaIpcOpenMemHandle 197 cudaStreamAddCallback 198
    cudaStreamCreateWithFlags 200 cudaDeviceGetAttribute 201 cudaStreamDestroy 202 cudaStreamCreateWithPriority 205
    cudaDeviceGetStreamPriorityRange 206 cudaMallocManaged 207 cudaOccupancyMaxActiveBlocksPerMultiprocessor 210
    cudaOccupancyMaxActiveBlocksPerMultiprocessor 211 cudaLaunchKernel 213 cudaLaunch_ptsz 214 cudaLaunchKernel_ptsz
    215 cudaMemcpy_ptds 216 cudaMemcpy2D_ptds 217 cudaMemcpyToArray_ptds 221 cudaMemcpyArrayToArray_ptds 223
    cudaMemcpyToSymbol_ptds 224 cudaMemcpyFromSymbol_ptds 225 cudaMemcpyAsync_ptsz 228 cudaMemcpy2DAsync_ptsz 231
    cudaMemcpyToSymbolAsync_ptsz 233 cudaMemset_ptds 234 cudaMemset2D_ptds 235 cudaMemsetAsync_ptsz 239
    cudaStreamSynchronize_ptsz 240 cudaStreamQuery_ptsz 242 cudaEventRecord_ptsz 245 cudaMemcpy3D_ptds 247
    cudaStreamWaitEvent_ptsz 248 cudaStreamAddCallback_ptsz 251
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 252 cudaMemPrefetchAsync 253 cudaMemPrefetchAsync_ptsz
    254 cudaMemAdvise 269 cudaLaunchCooperativeKernel 270 cudaLaunchCooperativeKernel_ptsz 273 cudaFuncSetAttribute
    310 cudaGraphInstantiate 311 cudaGraphLaunch 312 cudaGraphLaunch_ptsz 315 cudaStreamBeginCapture 316
    cudaStreamBeginCapture_ptsz 317 cudaStreamIsCapturing 318 cudaStreamIsCapturing_ptsz 319 cudaStreamEndCapture
    320 cudaStreamEndCapture_ptsz 373 cudaMallocAsync 374 cudaMallocAsync_ptsz 375 cudaFreeAsync 376
    cudaFreeAsync_ptsz 443 cudaGraphInstantiate
    """
)

# cupti_driver_cbid.h of the same.
DRIVER_CALLS = _named(
    """
    1 cuInit 2 cuDriverGetVersion 3 cuDeviceGet 4 cuDeviceGetCount 5 cuDeviceGetName 6 cuDeviceComputeCapability 7
    cuDeviceTotalMem 8 cuDeviceGetProperties 9 cuDeviceGetAttribute 10 cuCtxCreate 11 cuCtxDestroy 12 cuCtxAttach 13
    cuCtxDetach 16 cuCtxGetDevice 17 cuCtxSynchronize 18 cuModuleLoad 19 cuModuleLoadData 20 cuModuleLoadDataEx 22
    cuModuleUnload 23 cuModuleGetFunction 29 cuMemAlloc 33 cuMemFree 38 cuMemFreeHost 39 cuMemHostAlloc 85
    cuFuncGetAttribute 86 cuFuncSetCacheConfig 115 cuLaunch 116 cuLaunchGrid 118 cuEventCreate 119 cuEventRecord 120
    cuEventQuery 121 cuEventSynchronize 123 cuEventElapsedTime 124 cuStreamCreate 125 cuStreamQuery 126
    cuStreamSynchronize 135 cuGetExportTable 216 cuMemsetD8Async 220 cuMemsetD32Async 235 cuCtxCreate_v2 241
    cuModuleGetGlobal_v2 242 cuMemGetInfo_v2 243 cuMemAlloc_v2 245 cuMemFree_v2 247 cuMemHostGetDevicePointer_v2 249
    cuMemsetD8_v2 251 cuMemsetD32_v2 259 cuDeviceTotalMem_v2 276 cuMemcpyHtoD_v2 277 cuMemcpyHtoDAsync_v2 278
    cuMemcpyDtoH_v2 279 cuMemcpyDtoHAsync_v2 280 cuMemcpyDtoD_v2 281 cuMemcpyDtoDAsync_v2 294 cuMemAllocHost_v2 295
    cuStreamWaitEvent 302 cuMemHostUnregister 303 cuCtxSetCurrent 304 cuCtxGetCurrent 305 cuMemcpy 306 cuMemcpyAsync
    307 cuLaunchKernel 308 cuProfilerStart 309 cuProfilerStop 310 cuPointerGetAttribute 322 cuCtxDestroy_v2 323
    cuCtxPushCurrent_v2 324 cuCtxPopCurrent_v2 325 cuEventDestroy_v2 326 cuStreamDestroy_v2 332 cuDeviceGetPCIBusId
    362 cuLinkCreate 363 cuLinkAddData 365 cuLinkComplete 366 cuLinkDestroy 367 cuStreamCreateWithPriority 371
    cuMemAllocManaged 379 cuMemHostRegister_v2 386 cuDevicePrimaryCtxRetain 387 cuDevicePrimaryCtxRelease 392
    cuDevicePrimaryCtxGetState 397 cuMemcpyHtoD_v2_ptds 398 cuMemcpyDtoH_v2_ptds 399 cuMemcpyDtoD_v2_ptds 408
    cuMemcpy_ptds 411 cuMemsetD8_v2_ptds 413 cuMemsetD32_v2_ptds 418 cuMemcpyAsync_ptsz 421
    cuMemcpyHtoDAsync_v2_ptsz 422 cuMemcpyDtoHAsync_v2_ptsz 423 cuMemcpyDtoDAsync_v2_ptsz 428 cuMemsetD8Async_ptsz
    430 cuMemsetD32Async_ptsz 436 cuStreamWaitEvent_ptsz 439 cuStreamQuery_ptsz 440 cuStreamSynchronize_ptsz 441
    cuEventRecord_ptsz 442 cuLaunchKernel_ptsz 467 cuMemPrefetchAsync 468 cuMemPrefetchAsync_ptsz 477
    cuLaunchCooperativeKernel 478 cuLaunchCooperativeKernel_ptsz 482 cuDeviceGetUuid
    """
)

/* What Python needs of a device beside programs: memory, copies, waits. Functions give a cudaError_t, where nothing else is said. */
#include <cuda_runtime.h>
#include <stddef.h>

extern "C" {

int device_allocate(void **memory, size_t bytes) { return (int)cudaMalloc(memory, bytes); }

int device_free(void *memory) { return (int)cudaFree(memory); }

int device_write(void *to, const void *from, size_t bytes, void *stream)
{
    const cudaStream_t s = (cudaStream_t)stream;
    const int status = (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, s);
    return status ? status : (int)cudaStreamSynchronize(s);
}

int device_read(void *to, const void *from, size_t bytes, void *stream)
{
    const cudaStream_t s = (cudaStream_t)stream;
    const int status = (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s);
    return status ? status : (int)cudaStreamSynchronize(s);
}

int device_wait(void *stream) { return (int)cudaStreamSynchronize((cudaStream_t)stream); }

/* lets a stream wait for what another one has to do now */
int device_order(void *first, void *then)
{
    cudaEvent_t event;
    int status = (int)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (status) return status;
    status = (int)cudaEventRecord(event, (cudaStream_t)first);
    if (!status) status = (int)cudaStreamWaitEvent((cudaStream_t)then, event, 0);
    cudaEventDestroy(event);
    return status;
}

/* no status: 1 where an address is memory of the current device, else 0 */
int device_holds(const void *address)
{
    cudaPointerAttributes attributes;
    int device = 0;
    if (cudaPointerGetAttributes(&attributes, address) || cudaGetDevice(&device)) return 0;
    return attributes.type == cudaMemoryTypeDevice && attributes.device == device;
}

const char *device_error(int status) { return cudaGetErrorString((cudaError_t)status); }

}

/* What is called of CUDA's runtime to find a GPU, as plain C: a cudaError_t is an integer there. */
int cudaGetDeviceCount(int *count);
const char *cudaGetErrorString(int error);

enum { TEST_NO_GPU = 77 };

/* Whether CUDA finds a GPU; a line tells why it does not. */
static int test_finds_gpu(const char *tested)
{
    int count;
    const int error = cudaGetDeviceCount(&count);
    if (error == 0) return 1;
    printf("%s: nothing was tested, there is no GPU that CUDA can use: %s\n", tested, cudaGetErrorString(error));
    return 0;
}


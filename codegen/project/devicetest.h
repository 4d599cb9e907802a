/* What is called of CUDA's runtime, as plain C: a cudaError_t and a cudaMemcpyKind are integers there. */
int cudaMalloc(void **memory, size_t bytes);
int cudaFree(void *memory);
int cudaMemset(void *memory, int byte, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);

enum { TEST_FROM_DEVICE = 2, TEST_DEVICE_GUARD = 256 };

static void test_cuda(int error)
{
    if (error == 0) return;
    printf("CUDA gave error %d\n", error);
    exit(EXIT_FAILURE);
}

/* Memory of the device for a session, filled with NaN between two guards. */
static struct test_block test_open_session(size_t bytes)
{
    struct test_block block = {NULL, NULL, bytes};
    void *memory;
    test_cuda(cudaMalloc(&memory, bytes + 2 * TEST_DEVICE_GUARD));
    block.whole = memory;
    block.start = block.whole + TEST_DEVICE_GUARD;
    test_cuda(cudaMemset(block.whole, TEST_UNTOUCHED, bytes + 2 * TEST_DEVICE_GUARD));
    test_cuda(cudaMemset(block.start, TEST_UNSET, bytes));
    return block;
}

/* Free it; whether its guards are as they were. */
static int test_close_session(struct test_block *block)
{
    unsigned char guards[2 * TEST_DEVICE_GUARD];
    int passed = 1;
    test_cuda(cudaMemcpy(guards, block->whole, TEST_DEVICE_GUARD, TEST_FROM_DEVICE));
    test_cuda(cudaMemcpy(
        guards + TEST_DEVICE_GUARD, block->start + block->bytes, TEST_DEVICE_GUARD, TEST_FROM_DEVICE));
    for (int n = 0; n < 2 * TEST_DEVICE_GUARD; ++n) passed &= guards[n] == TEST_UNTOUCHED;
    test_cuda(cudaFree(block->whole));
    return passed;
}

/* What a session keeps is copied to be looked at. */
static void test_kept(void **kept, const void *elements, size_t bytes)
{
    if (*kept == NULL) *kept = test_allocate(bytes + 1);
    test_cuda(cudaMemcpy(*kept, elements, bytes, TEST_FROM_DEVICE));
}

static void test_free_kept(void **kept, int count)
{
    for (int n = 0; n < count; ++n) free(kept[n]);
}

/* A function under test: its arrays are the inputs, then the outputs, `count` of them in all. */
struct test_function {
    const char *name;
    int (*call)(const void *sizes, void **arrays, void *work);
    size_t (*space)(const void *sizes);
    int inputs, count;
};

/* An array of one test. Types: f float, d double, i int32_t, l int64_t, b uint8_t. */
struct test_array {
    const char *name;
    char type;
    size_t count;        /* elements */
    const void *values;  /* what an input repeats, or what is stored of an output */
    size_t stored;       /* how many values */
    size_t start;        /* of an input: where it begins in its values */
    size_t below;        /* of indices: what they are less than, taken from their places in the values; else 0 */
    size_t step;         /* of an output: the distance of two stored elements */
    double relative, scale;
};

/* Memory between two guards, which nobody may write to. */
struct test_block {
    unsigned char *whole, *start;
    size_t bytes;
};

enum { TEST_GUARD = 64, TEST_UNTOUCHED = 0xA5, TEST_UNSET = 0xFF };

static void *test_allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) {
        puts("out of memory");
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* A block on the boundary of a cache line, at least TEST_GUARD bytes on both sides of it, filled with NaN. */
static struct test_block test_open(size_t bytes)
{
    struct test_block block = {NULL, NULL, bytes};
    block.whole = test_allocate(bytes + 3 * TEST_GUARD);
    block.start = block.whole + 2 * TEST_GUARD - (uintptr_t)block.whole % TEST_GUARD;
    memset(block.whole, TEST_UNTOUCHED, bytes + 3 * TEST_GUARD);
    memset(block.start, TEST_UNSET, bytes);
    return block;
}

static int test_is_guarded(const struct test_block *block)
{
    const unsigned char *end = block->whole + block->bytes + 3 * TEST_GUARD;
    for (const unsigned char *p = block->whole; p < block->start; ++p) {
        if (*p != TEST_UNTOUCHED) return 0;
    }
    for (const unsigned char *p = block->start + block->bytes; p < end; ++p) {
        if (*p != TEST_UNTOUCHED) return 0;
    }
    return 1;
}

static size_t test_width(char type)
{
    switch (type) {
    case 'b': return sizeof(uint8_t);
    case 'f': return sizeof(float);
    case 'i': return sizeof(int32_t);
    default: return sizeof(double);
    }
}

/* Fill an input, or (with `fill` 0) see whether it is still what it was filled with. */
static int test_input(const struct test_array *array, unsigned char *elements, int fill)
{
    const size_t width = test_width(array->type);
    for (size_t i = 0; i < array->count; ++i) {
        const size_t n = (array->start + i) % array->stored;
        const int64_t index = (int64_t)(array->below > 0 ? n % array->below : 0);
        const int32_t narrow = (int32_t)index;
        const void *value = (const unsigned char *)array->values + n * width;
        if (array->below > 0) value = array->type == 'i' ? (const void *)&narrow : (const void *)&index;
        if (fill) {
            memcpy(elements + i * width, value, width);
        } else if (memcmp(elements + i * width, value, width) != 0) {
            printf("input %s was changed\n", array->name);
            return 0;
        }
    }
    return 1;
}

static double test_float(char type, const void *elements, size_t i)
{
    return type == 'f' ? (double)((const float *)elements)[i] : ((const double *)elements)[i];
}

static int64_t test_integer(char type, const void *elements, size_t i)
{
    switch (type) {
    case 'b': return ((const uint8_t *)elements)[i];
    case 'i': return ((const int32_t *)elements)[i];
    default: return ((const int64_t *)elements)[i];
    }
}

/* Whether an output is what is stored of it; the first difference is printed. */
static int test_output(const struct test_array *array, const void *elements)
{
    for (size_t n = 0; n < array->stored; ++n) {
        const size_t i = n * array->step;
        if (array->type == 'f' || array->type == 'd') {
            const double got = test_float(array->type, elements, i);
            const double want = test_float(array->type, array->values, n);
            const double error = fabs(got - want);
            if (isnan(want) ? isnan(got) : got >= want && got <= want) continue;
            if (isfinite(want) && error <= array->relative * (fabs(want) + array->scale)) continue;
            printf("%s[%zu] is %.9g, expected %.9g\n", array->name, i, got, want);
            return 0;
        }
        const int64_t got = test_integer(array->type, elements, i);
        const int64_t want = test_integer(array->type, array->values, n);
        if (got != want) {
            printf("%s[%zu] is %" PRId64 ", expected %" PRId64 "\n", array->name, i, got, want);
            return 0;
        }
    }
    return 1;
}

/* Whether a call gives a status. */
static int test_status(
    const struct test_function *function, const void *sizes, void **arrays, void *work, int want, const char *when)
{
    const int got = function->call(sizes, arrays, work);
    if (got != want) printf("returned %d %s, expected %d\n", got, when, want);
    return got == want;
}

/* Whether NULL for an array or the workspace gives 1, and overlap of an output with anything 2. */
static int test_pointers(
    const struct test_function *function, const void *sizes, const struct test_block *blocks, void **arrays)
{
    const int count = function->count;
    void *work = blocks[count].start;
    if (blocks[count].bytes > 0 && !test_status(function, sizes, arrays, NULL, 1, "without work")) return 0;
    for (int a = 0; a < count; ++a) {
        if (blocks[a].bytes == 0) continue;
        arrays[a] = NULL;
        if (!test_status(function, sizes, arrays, work, 1, "for NULL")) return 0;
        for (int b = 0; b <= count && a >= function->inputs; ++b) {
            if (b == a || blocks[b].bytes == 0) continue;
            arrays[a] = blocks[b].start;
            if (!test_status(function, sizes, arrays, work, 2, "for overlap")) return 0;
        }
        arrays[a] = blocks[a].start;
    }
    return 1;
}

/* Call a function, its arrays in `blocks` and its workspace after them, and look at everything it left. */
static int test_call(
    const struct test_function *function,
    const void *sizes,
    const struct test_array *described,
    const struct test_block *blocks,
    void **arrays,
    int status)
{
    const int count = function->count;
    void *work = blocks[count].bytes > 0 ? blocks[count].start : NULL;
    const char *when = status == 0 ? "for good arguments" : "for an index out of range";
    if (!test_status(function, sizes, arrays, work, status, when)) return 0;
    for (int a = 0; a <= count; ++a) {
        if (test_is_guarded(&blocks[a])) continue;
        printf("wrote outside of %s\n", a < count ? described[a].name : "work");
        return 0;
    }
    for (int a = 0; a < count; ++a) {
        const int is_good = a < function->inputs ? test_input(&described[a], blocks[a].start, 0)
                                                 : status != 0 || test_output(&described[a], blocks[a].start);
        if (!is_good) return 0;
    }
    return test_pointers(function, sizes, blocks, arrays);
}

static void test_begin(const struct test_function *function, const char *said)
{
    printf("%s%s%s: ", function->name, *said ? " " : "", said);
}

/* One test: 0 if it passes. `status` is what the function returns: 0, or 4 where an index is out of range. */
static int test_run(
    const struct test_function *function,
    const char *said,
    const void *sizes,
    const struct test_array *described,
    int status)
{
    const int count = function->count;
    struct test_block *blocks = test_allocate(((size_t)count + 1) * sizeof *blocks);
    void **arrays = test_allocate((size_t)count * sizeof *arrays);
    const size_t bytes = function->space(sizes);
    int passed = 0;
    test_begin(function, said);
    if (bytes == SIZE_MAX) {
        puts("no workspace is large enough");
    } else {
        for (int a = 0; a < count; ++a) {
            blocks[a] = test_open(described[a].count * test_width(described[a].type));
            arrays[a] = blocks[a].start;
            if (a < function->inputs) test_input(&described[a], blocks[a].start, 1);
        }
        blocks[count] = test_open(bytes);
        passed = test_call(function, sizes, described, blocks, arrays, status);
        if (passed) puts("ok");
        for (int a = 0; a <= count; ++a) free(blocks[a].whole);
    }
    free(arrays);
    free(blocks);
    return !passed;
}

/* One test: 0 if a function of fixed extents refuses to run without arrays. */
static int test_without_arrays(const struct test_function *function, const char *said)
{
    void **arrays = test_allocate((size_t)function->count * sizeof *arrays);
    struct test_block block = test_open(TEST_GUARD);
    for (int a = 0; a < function->count; ++a) arrays[a] = NULL;
    test_begin(function, said);
    const int passed = test_status(function, NULL, arrays, block.start, 1, "without arrays");
    if (passed) puts("ok");
    free(arrays);
    free(block.whole);
    return !passed;
}

/* One test: 0 if sizes that nobody can mean give a status, and no workspace. */
static int test_refused(const struct test_function *function, const char *said, const void *sizes, int status)
{
    struct test_block block = test_open(TEST_GUARD);
    void **arrays = test_allocate((size_t)function->count * sizeof *arrays);
    for (int a = 0; a < function->count; ++a) arrays[a] = block.start;
    test_begin(function, said);
    int passed = function->space(sizes) == SIZE_MAX;
    if (!passed) puts("asked for a workspace");
    passed = passed && test_status(function, sizes, arrays, block.start, status, "for such sizes");
    if (passed) puts("ok");
    free(arrays);
    free(block.whole);
    return !passed;
}

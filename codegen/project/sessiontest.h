/* A session under test. Its arrays are inputs and outputs of a run; `lasting` are those that it keeps. */
struct test_session {
    const char *name, *file;
    void *models[2];
    size_t (*bytes)(void);
    int (*init)(void *model, void *memory, uint64_t seed);
    int (*run)(void *model, void **arrays);
    int (*save)(const void *model, const char *path);
    int (*load)(void *model, const char *path);
    void (*kept)(const void *model, void **lasting);
    uint64_t seed;
    int inputs, outputs, lasting, runs;
    const struct test_array *given, *first, *results, *last;
};

/* Whether everything that lasts is what is stored of it. */
static int test_lasting(const struct test_session *session, const struct test_array *stored, void **lasting)
{
    session->kept(session->models[0], lasting);
    for (int n = 0; n < session->lasting; ++n) {
        if (!test_output(&stored[n], lasting[n])) return 0;
    }
    return 1;
}

/* Whether the runs give what is stored. */
static int test_runs(const struct test_session *session, void **arrays, void **lasting)
{
    for (int run = 0; run < session->runs; ++run) {
        const int status = session->run(session->models[0], arrays);
        if (status != 0) printf("run %d returned %d\n", run + 1, status);
        if (status != 0) return 0;
        for (int n = 0; n < session->outputs; ++n) {
            if (test_output(&session->results[run * session->outputs + n], arrays[session->inputs + n])) continue;
            printf("in run %d\n", run + 1);
            return 0;
        }
    }
    return session->runs == 0 || test_lasting(session, session->last, lasting);
}

/* Whether a second session goes on from a file as the first does, bit by bit. */
static int test_file(const struct test_session *session, void **arrays, void **lasting)
{
    void **others = lasting + session->lasting;
    int status = session->load(session->models[1], "no such folder/file");
    if (status != 5) printf("returned %d for a file that is not there, expected 5\n", status);
    if (status != 5) return 0;
    status = session->save(session->models[0], session->file);
    if (status == 0) status = session->load(session->models[1], session->file);
    remove(session->file);
    if (status != 0) printf("returned %d for a file that was written\n", status);
    if (status != 0) return 0;
    for (int run = 0; run < 2; ++run) {
        session->kept(session->models[0], lasting);
        session->kept(session->models[1], others);
        for (int n = 0; n < session->lasting; ++n) {
            const struct test_array *array = &session->first[n];
            if (run == 0 && array->start) continue; /* what a run gives and no file has */
            if (memcmp(lasting[n], others[n], array->count * test_width(array->type)) == 0) continue;
            printf("%s differs %s\n", array->name, run == 0 ? "after it was read" : "a run later");
            return 0;
        }
        const int one = session->run(session->models[0], arrays), other = session->run(session->models[1], arrays);
        if (one == 0 && other == 0) continue;
        if (one == other && session->runs == 0) return 1; /* nobody knows that its inputs are good */
        printf("a run after it was read returned %d and %d\n", one, other);
        return 0;
    }
    return 1;
}

/* Whether NULL gives 1. */
static int test_nothing(const struct test_session *session, void *memory)
{
    if (session->init(NULL, memory, 0) == 1 && session->init(session->models[0], NULL, 0) == 1
        && session->save(session->models[0], NULL) == 1 && session->load(session->models[0], NULL) == 1) {
        return 1;
    }
    puts("expected 1 for NULL");
    return 0;
}

/* One test of a session: 0 if it passes. */
static int test_steps(const struct test_session *session)
{
    const int count = session->inputs + session->outputs;
    struct test_block *blocks = test_allocate(((size_t)count + 2) * sizeof *blocks);
    void **arrays = test_allocate(((size_t)count + 1) * sizeof *arrays);
    void **lasting = test_allocate(2 * ((size_t)session->lasting + 1) * sizeof *lasting);
    for (int n = 0; n < 2 * session->lasting; ++n) lasting[n] = NULL;
    const size_t bytes = session->bytes();
    int passed = 0;
    printf("%s %d runs%s: ", session->name, session->runs, session->runs ? "" : " (too large for stored results)");
    if (bytes == SIZE_MAX) {
        puts("no memory is large enough");
    } else {
        for (int a = 0; a < count; ++a) {
            blocks[a] = test_open(session->given[a].count * test_width(session->given[a].type));
            arrays[a] = blocks[a].start;
            if (a < session->inputs) test_input(&session->given[a], arrays[a], 1);
        }
        for (int n = 0; n < 2; ++n) {
            blocks[count + n] = test_open_session(bytes);
            session->init(session->models[n], blocks[count + n].start, session->seed + (uint64_t)n);
        }
        passed = test_lasting(session, session->first, lasting) && test_runs(session, arrays, lasting)
                 && test_file(session, arrays, lasting) && test_nothing(session, blocks[count].start);
        for (int a = 0; a < count; ++a) {
            if (passed && !test_is_guarded(&blocks[a])) passed = (puts("wrote outside of its memory"), 0);
            if (passed && a < session->inputs) passed = test_input(&session->given[a], arrays[a], 0);
            free(blocks[a].whole);
        }
        for (int n = 0; n < 2; ++n) {
            if (!test_close_session(&blocks[count + n]) && passed) passed = (puts("wrote outside of its session"), 0);
        }
        if (passed) puts("ok");
    }
    test_free_kept(lasting, 2 * session->lasting);
    free(lasting);
    free(arrays);
    free(blocks);
    return !passed;
}

/* Memory of a session, between two guards. */
static struct test_block test_open_session(size_t bytes)
{
    return test_open(bytes);
}

/* Free it; whether its guards are as they were. */
static int test_close_session(struct test_block *block)
{
    const int passed = test_is_guarded(block);
    free(block->whole);
    return passed;
}

/* What a session keeps is looked at where it is. */
static void test_kept(void **kept, void *elements, size_t bytes)
{
    (void)bytes;
    *kept = elements;
}

static void test_free_kept(void **kept, int count)
{
    (void)kept;
    (void)count;
}

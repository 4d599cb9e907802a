#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

/* a place of a thread: it is ``inside`` from there to the end of what it does there */
typedef struct {
    jmp_buf place;
    fenv_t environment;
    pthread_t thread;
    atomic_int inside;
} landing;

/* a call: the functions that its parallel loops use come first; the last landing is that of the calling thread */
enum { WHOLE = MOST_THREADS };

/* the status of a call that was stopped */
enum { STOPPED = 5 };
typedef struct call call;
struct call {
    void *(*place)(call *, int);
    int (*enter)(call *, int);
    void (*leave)(call *, int);
    void (*landed)(call *, int);
    void (*pause)(call *);
    void (*resume)(call *);
    atomic_int begun, stop, over, sending;
    landing landings[WHOLE + 1];
};

/* the call that is being stopped, of all calls of this process: the main thread stops one at a time */
static call *_Atomic stopping;

static void *place(call *c, int number)
{
    return &c->landings[number].place;
}

/* after the place was set: 1 to go on, 0 if the call was stopped; of this and ``stop`` one sees what the other wrote */
static int enter(call *c, int number)
{
    landing *const at = &c->landings[number];
    fegetenv(&at->environment);
    at->thread = pthread_self();
    atomic_store(&at->inside, 1);
    if (!atomic_load(&c->stop)) return 1;
    atomic_store(&at->inside, 0);
    return 0;
}

static void leave(call *c, int number)
{
    atomic_store(&c->landings[number].inside, 0);
}

/* after a jump: a handler starts with rounding and the like as they are at the start of a program */
static void landed(call *c, int number)
{
    fesetenv(&c->landings[number].environment);
}

/* before a parallel loop: nothing jumps out of the OpenMP runtime */
static void leave_whole(call *c)
{
    leave(c, WHOLE);
}

/* after a parallel loop */
static void resume(call *c)
{
    landing *const at = &c->landings[WHOLE];
    atomic_store(&at->inside, 1);
    if (!atomic_load(&c->stop)) return;
    atomic_store(&at->inside, 0);
    _longjmp(at->place, 1);
}

/* the handler of the signal */
static void jump(int number)
{
    call *const c = atomic_load(&stopping);
    (void)number;
    if (c == NULL || !atomic_load(&c->stop)) return;
    for (int n = 0; n <= WHOLE; ++n) {
        landing *const at = &c->landings[n];
        if (atomic_load(&at->inside) && pthread_equal(at->thread, pthread_self())) {
            atomic_store(&at->inside, 0);
            _longjmp(at->place, 1);
        }
    }
}

static void nap(long nanoseconds)
{
    const struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}

size_t stop_bytes(void)
{
    return sizeof(call);
}

/* a call that has not begun */
void stop_prepare(void *handle)
{
    call *const c = handle;
    memset(c, 0, sizeof(call));
    c->place = place;
    c->enter = enter;
    c->leave = leave;
    c->landed = landed;
    c->pause = leave_whole;
    c->resume = resume;
}

/* stop a call that has begun, and return when all of its threads have stopped; else let it stop when it begins */
void stop_now(void *handle)
{
    call *const c = handle;
    struct sigaction jumping, before;
    memset(&jumping, 0, sizeof jumping);
    jumping.sa_handler = jump;
    jumping.sa_flags = SA_NODEFER | SA_RESTART; /* the handler does not return, which would open the signal again */
    sigemptyset(&jumping.sa_mask);
    atomic_store(&c->sending, 1);
    atomic_store(&c->stop, 1);
    if (atomic_load(&c->begun) && !atomic_load(&c->over)) {
        atomic_store(&stopping, c);
        sigaction(SIGURG, &jumping, &before);
        while (!atomic_load(&c->over)) {
            for (int n = 0; n <= WHOLE; ++n) {
                if (atomic_load(&c->landings[n].inside)) pthread_kill(c->landings[n].thread, SIGURG);
            }
            nap(200000);
        }
        sigaction(SIGURG, &before, NULL);
        atomic_store(&stopping, NULL);
    }
    atomic_store(&c->sending, 0);
}

/* what the function returns, or STOPPED if it was stopped; by then nobody sends signals to its threads any more */
int stop_run(void *handle, int (*function)(PARAMETERS), DECLARED)
{
    call *const c = handle;
    volatile int status = STOPPED;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGURG);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    atomic_store(&c->begun, 1);
    if (_setjmp(c->landings[WHOLE].place) != 0) {
        landed(c, WHOLE);
    } else if (enter(c, WHOLE)) {
        status = function(ARGUMENTS);
        leave(c, WHOLE);
    }
    atomic_store(&c->over, 1);
    while (atomic_load(&c->sending)) nap(50000);
    return status;
}

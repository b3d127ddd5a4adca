/* Threads that take the same sentences through the layers: they do the parts of one step, then those of the next.

   All threads do the same steps, and a free thread takes the next part. A step ends when its parts are done, even if
   some threads did not take part. So a thread that the system does not run delays only the part that it has started,
   and the caller continues without threads that never started. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define MOST_THREADS 64
#define PARTS 2    /* parts of a step per thread; with two no thread waits for long */
#define SPINS 1000 /* checks before a waiting thread leaves the processor to others */

typedef struct {
    int64_t threads;
    void (*work)(void *tasks, int64_t thread);
    void *tasks;                                /* in the caller's memory: only for threads that are let in */
    int64_t taken __attribute__((aligned(64))); /* parts of all steps so far */
    int64_t done __attribute__((aligned(64)));
    int64_t came; /* threads but the caller's, while they are let in; far below 0 afterwards */
    int64_t left, holders, sleepers;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a step is done, or the last thread has left */
} Team;

/* The position of a thread: `before` is the number of parts of all previous steps. */
typedef struct {
    Team *team;
    int64_t before;
} Member;

ALWAYS void rest(void) {
#ifdef __x86_64__
    _mm_pause();
#else
    __asm__ volatile("yield");
#endif
}

/* Waits until a number that only grows reaches a value. The thread that increases it calls wake() afterwards. */
static void wait_for(Team *team, const int64_t *number, int64_t value) {
    for (int spins = 0; spins < SPINS; spins++) {
        if (__atomic_load_n(number, __ATOMIC_ACQUIRE) >= value) return;
        rest();
    }
    pthread_mutex_lock(&team->lock);
    __atomic_fetch_add(&team->sleepers, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(number, __ATOMIC_SEQ_CST) < value) pthread_cond_wait(&team->changed, &team->lock);
    __atomic_fetch_sub(&team->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&team->lock);
}

static void wake(Team *team) {
    if (!__atomic_load_n(&team->sleepers, __ATOMIC_SEQ_CST)) return;
    pthread_mutex_lock(&team->lock);
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
}

/* A part of a step that no one has taken, or -1 when all are done. */
static int64_t next_part(Member *member, int64_t parts) {
    Team *team = member->team;
    int64_t end = member->before + parts, taken = __atomic_load_n(&team->taken, __ATOMIC_RELAXED);
    while (taken < end)
        if (__atomic_compare_exchange_n(&team->taken, &taken, taken + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return taken - member->before;
    wait_for(team, &team->done, end);
    member->before = end;
    return -1;
}

static void finish_part(Member *member, int64_t parts) {
    int64_t done = __atomic_add_fetch(&member->team->done, 1, __ATOMIC_SEQ_CST);
    if (done == member->before + parts) wake(member->team);
}

#define EACH_PART(part, member, parts) \
    for (int64_t part; (part = next_part(member, parts)) >= 0; finish_part(member, parts))

/* Number of items per part, if there are `times` sets of `count` items; with one thread all items are one part. */
static int64_t part_size(const Team *team, int64_t count, int64_t times) {
    if (team->threads == 1) return count;
    int64_t parts = (PARTS * team->threads + times - 1) / times;
    return (count + parts - 1) / parts;
}

static void let_go(Team *team) {
    if (__atomic_sub_fetch(&team->holders, 1, __ATOMIC_ACQ_REL)) return;
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->changed);
    free(team);
}

static void *join_in(void *of) {
    Team *team = of;
    int64_t thread = __atomic_add_fetch(&team->came, 1, __ATOMIC_SEQ_CST);
    if (thread > 0) {
        team->work(team->tasks, thread);
        __atomic_fetch_add(&team->left, 1, __ATOMIC_SEQ_CST);
        wake(team);
    }
    let_go(team);
    return NULL;
}

/* A team of `threads` threads, one of which is the caller; NULL if there is not enough memory. */
static Team *new_team(int64_t threads) {
    Team *team = aligned_alloc(64, up(sizeof(Team), 64));
    if (!team) return NULL;
    *team = (Team){.threads = threads, .holders = 1};
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    return team;
}

/* Calls work(tasks, 0) here, and work(tasks, 1) etc. in as many other threads as the system can start. */
static void work_together(Team *team, void (*work)(void *, int64_t), void *tasks) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t all, before;
    pthread_t other;
    team->work = work, team->tasks = tasks;
    sigfillset(&all);
    for (size_t f = 0; f < sizeof(faults) / sizeof(int); f++) sigdelset(&all, faults[f]);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* other signals are for the threads of the program */
    for (int64_t t = 1; t < team->threads; t++) {
        __atomic_fetch_add(&team->holders, 1, __ATOMIC_RELAXED);
        if (pthread_create(&other, NULL, join_in, team)) {
            __atomic_fetch_sub(&team->holders, 1, __ATOMIC_RELAXED);
            break;
        }
        pthread_detach(other);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(tasks, 0);
    /* From now on no thread is let in; those that were let in may still be in one of the steps. */
    wait_for(team, &team->left, __atomic_exchange_n(&team->came, -MOST_THREADS, __ATOMIC_SEQ_CST));
    let_go(team);
}

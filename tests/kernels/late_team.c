/* Whether the threads of a team that were let in are waited for, though others come too late: thread 1 is still at work when
   all is done, and thread 2 comes then. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

typedef struct {
    void *(*function)(void *);
    void *of;
    int number;
} Call;

static int all_done, is_working, has_worked;

static void wait_until(const int *flag) {
    while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST)) sched_yield();
}

static void raise_flag(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST); }

static void *begin(void *of) {
    Call *call = of;
    if (call->number == 1) {
        wait_until(&all_done);
        usleep(50000); /* until no one is let in */
    }
    return call->function(call->of);
}

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *of) {
    static Call calls[2];
    static int created;
    calls[created] = (Call){function, of, created};
    return pthread_create(thread, attributes, begin, calls + created++);
}

#define pthread_create create
#include "random_model.h"

static void stay(void *tasks, int64_t thread) {
    (void)tasks;
    if (thread == 0) {
        wait_until(&is_working);
        raise_flag(&all_done);
    } else {
        raise_flag(&is_working);
        usleep(300000);
        raise_flag(&has_worked);
    }
}

int main(void) {
    if (!supported()) return 77;
    work_together(new_team(3), stay, NULL);
    return !__atomic_load_n(&has_worked, __ATOMIC_SEQ_CST);
}

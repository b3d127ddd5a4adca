/* Whether several threads give the states of one, to the last bit: also where the system gives fewer than requested, or
   lets some begin when all is done. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

static int gives = 100; /* threads */
static int are_late, may_begin, ended_late;

typedef struct {
    void *(*function)(void *);
    void *of;
} Call;

static void *begin(void *of) {
    Call call = *(Call *)of;
    int is_late = __atomic_load_n(&are_late, __ATOMIC_SEQ_CST);
    while (is_late && !__atomic_load_n(&may_begin, __ATOMIC_SEQ_CST)) sched_yield();
    call.function(call.of);
    __atomic_fetch_add(&ended_late, is_late, __ATOMIC_SEQ_CST);
    return NULL;
}

static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *of) {
    static Call calls[100];
    static int created;
    if (!gives) return EAGAIN;
    gives--;
    calls[created] = (Call){function, of};
    return pthread_create(thread, attributes, begin, calls + created++);
}

#define pthread_create create
#include "random_model.h"

static int differs(int64_t weights, int64_t width, int64_t heads, int64_t by) {
    state = 1, threads = 1; /* the same model twice */
    float *alone = states_of(weights, FLOAT32, width, heads, 2 * width, GELU);
    state = 1, threads = by;
    float *together = states_of(weights, FLOAT32, width, heads, 2 * width, GELU);
    return memcmp(alone, together, TOKENS * width * sizeof(float)) != 0;
}

int main(void) {
    if (!supported()) return 77;
    alarm(120); /* who waits for threads that are late waits for good */
    if (differs(FLOAT32, 64, 2, 2) || differs(BYTES, 80, 5, 3) || differs(WIDENED, 64, 2, 20)) return 1;
    gives = 1;
    if (differs(BYTES, 64, 2, 3)) return 2;
    gives = 0;
    if (differs(BYTES, 64, 2, 3)) return 3;
    gives = 3;
    __atomic_store_n(&are_late, 1, __ATOMIC_SEQ_CST);
    if (differs(BYTES, 64, 2, 4)) return 4;
    __atomic_store_n(&may_begin, 1, __ATOMIC_SEQ_CST); /* the model is gone by now */
    while (__atomic_load_n(&ended_late, __ATOMIC_SEQ_CST) < 3) sched_yield();
    return 0;
}

/* ThreadSanitizer of gcc 12 and clang 14 knows pthreads but not the threads of C11, in which
 * librdkafka is written: a thread that thrd_create started has no state of its own and crashes in
 * the first malloc, and every lock of librdkafka is invisible. So in builds with -fsanitize=thread
 * each program brings the functions that librdkafka calls, made of pthreads. glibc's types are the
 * same ones (nptl/thrd_priv.h), and the linker prefers a program's symbols to those of a library.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mtx_t is no pthread_mutex_t here");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "cnd_t is no pthread_cond_t here");
_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "thrd_t is no pthread_t here");

static int result_of(int failed)
{
    switch (failed) {
    case 0:
        return thrd_success;
    case ENOMEM:
        return thrd_nomem;
    case ETIMEDOUT:
        return thrd_timedout;
    case EBUSY:
        return thrd_busy;
    default:
        return thrd_error;
    }
}

/* ---- threads -------------------------------------------------------------------------- */

struct start {
    thrd_start_t run;
    void *arg;
};

static void *run(void *opaque)
{
    struct start start = *(struct start *)opaque;
    free(opaque);
    return (void *)(intptr_t)start.run(start.arg);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *arg)
{
    struct start *start = malloc(sizeof(*start));
    if (!start)
        return thrd_nomem;
    *start = (struct start){ function, arg };
    int failed = pthread_create(thread, NULL, run, start);
    if (failed)
        free(start);
    return result_of(failed);
}

int thrd_join(thrd_t thread, int *result)
{
    void *value = NULL;
    int failed = pthread_join(thread, &value);
    if (!failed && result)
        *result = (int)(intptr_t)value;
    return result_of(failed);
}

/* ---- locks ---------------------------------------------------------------------------- */

int mtx_init(mtx_t *lock, int type)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, type & mtx_recursive ? PTHREAD_MUTEX_RECURSIVE
                                                          : PTHREAD_MUTEX_NORMAL);
    int failed = pthread_mutex_init((pthread_mutex_t *)lock, &kind);
    pthread_mutexattr_destroy(&kind);
    return result_of(failed);
}

void mtx_destroy(mtx_t *lock)
{
    pthread_mutex_destroy((pthread_mutex_t *)lock);
}

int mtx_lock(mtx_t *lock)
{
    return result_of(pthread_mutex_lock((pthread_mutex_t *)lock));
}

int mtx_unlock(mtx_t *lock)
{
    return result_of(pthread_mutex_unlock((pthread_mutex_t *)lock));
}

int cnd_init(cnd_t *condition)
{
    return result_of(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition)
{
    return result_of(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
    return result_of(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *lock)
{
    return result_of(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)lock));
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict lock,
                  const struct timespec *restrict until)
{
    return result_of(
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)lock, until));
}

void call_once(once_flag *flag, void (*function)(void))
{
    pthread_once((pthread_once_t *)flag, function);
}

/* Preloaded with Debian's faketime: glibc's own cnd_timedwait, with which librdkafka waits,
 * compares a false moment with the true clock. This one waits through the function that faketime
 * replaces. */
#include <errno.h>
#include <pthread.h>
#include <threads.h>

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict at)
{
    int failed = pthread_cond_timedwait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, at);
    return failed == 0 ? thrd_success : failed == ETIMEDOUT ? thrd_timedout : thrd_error;
}

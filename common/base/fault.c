#include "fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "str.h"

void fault_point(const char *name)
{
    static atomic_int passed;
    struct str rest = str_of(getenv("FAULT_POINT")), chosen, count;
    int64_t n = 1;
    if (!rest.len || !str_split(&rest, ':', &chosen) || !str_is(chosen, name))
        return;
    if (str_split(&rest, ':', &count) && !str_to_i64(count, &n))
        n = 1;
    if (atomic_fetch_add(&passed, 1) + 1 != n)
        return;
    if (rest.len)
        dprintf(STDERR_FILENO, "fault point %s: %.*s\n", name, (int)rest.len, rest.ptr);
    while (str_is(rest, "hang"))
        pause();
    if (str_is(rest, "exit"))
        pthread_exit(NULL);
    raise(SIGKILL);
}

#include "fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "str.h"

void fault_point(const char *name)
{
    static atomic_int passed;
    struct str rest = str_of(getenv("FAULT_POINT")), chosen;
    int64_t n = 1;
    if (!rest.len || !str_split(&rest, ':', &chosen) || !str_is(chosen, name))
        return;
    if (rest.len && !str_to_i64(rest, &n))
        n = 1;
    if (atomic_fetch_add(&passed, 1) + 1 == n)
        raise(SIGKILL);
}

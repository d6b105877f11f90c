#include "commits.h"

#include <ctype.h>

#include "shape.h"
#include "sim.h"

bool commit_known(struct str sha)
{
    if (sha.len != 40 || str_starts(sha, "0000"))
        return false;
    for (size_t i = 0; i < sha.len; i++) {
        if (!isxdigit((unsigned char)sha.ptr[i]))
            return false;
    }
    return true;
}

void commits_get(struct sim *sim, const struct call *call, struct reply *reply)
{
    if (!commit_known(call->part[0]))
        reply_error(reply, 422, "No commit found for SHA: %.*s", STR_ARG(call->part[0]));
    else
        reply_json(reply, 200, shape_commit(sim->base_url, call->repo, call->part[0]));
}

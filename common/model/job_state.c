#include "job_state.h"

static const char *const state_names[] = {
    [JOB_NONE] = "none",
    [JOB_DISPATCHED] = "dispatched",
    [JOB_IN_PROGRESS] = "in_progress",
    [JOB_TIMED_OUT] = "timed_out",
    [JOB_COMPLETED] = "completed",
};

const char *job_state_name(enum job_state state)
{
    return state_names[state];
}

enum job_state job_state_of(struct str name)
{
    for (size_t i = 0; i < sizeof(state_names) / sizeof(state_names[0]); i++)
        if (str_is(name, state_names[i]))
            return (enum job_state)i;
    return JOB_NONE;
}

const char *const conclusions[] = { "success",         "failure", "cancelled",
                                    "timed_out",       "neutral", "skipped",
                                    "action_required", "stale",   NULL };

bool conclusion_valid(struct str s)
{
    for (size_t i = 0; conclusions[i]; i++)
        if (str_is(s, conclusions[i]))
            return true;
    return false;
}

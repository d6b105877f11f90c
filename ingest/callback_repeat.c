#include "callback_repeat.h"

#include <string.h>

bool callback_repeat_check(const struct callback *fields, enum job_state known,
                           const char *known_conclusion, const char **status, struct answer *a)
{
    *status = job_state_name(fields->status);
    if (known < fields->status)
        return true;
    if (known == JOB_COMPLETED && fields->status == JOB_COMPLETED &&
        strcmp(known_conclusion, fields->conclusion) != 0)
        return answer_refuse(a, 409, "other_conclusion",
                             "this attempt has completed already with conclusion %s",
                             known_conclusion[0] != '\0' ? known_conclusion : "null");
    *status = "duplicate";
    return true;
}

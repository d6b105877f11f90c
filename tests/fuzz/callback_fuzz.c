/* Callback bodies. What is taken keeps the promises of callback.h. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/callback.h"
#include "common/model/ids.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(const char *text, size_t max)
{
    if (!text)
        return;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json || strlen(text) > max)
        abort();
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct callback c;
    struct why why;
    if (callback_parse((struct str){ (const char *)data, size }, STR_NONE, &c, &why))
        return 0;
    if (!delivery_valid(str_of(c.delivery_id)) || !c.workflow_name[0] || !c.job_name[0] ||
        !c.run_id[0] || !c.run_attempt[0] || !c.check_run_id[0])
        abort();
    if (c.status != JOB_IN_PROGRESS && c.status != JOB_COMPLETED)
        abort();
    if (c.conclusion[0] && !conclusion_valid(str_of(c.conclusion)))
        abort();
    if (c.passed < 0 || c.failed < 0 || c.skipped < 0 || c.total < 0)
        abort();
    check_json(c.failed_tests, 64u << 20);
    check_json(c.triage_verdict, 16u << 10);
    callback_clear(&c);
    return 0;
}

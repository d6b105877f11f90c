/* Records as Kafka hands them out: lines "name: value" are the headers of a task (the line "key:"
 * is its key); the whole input is also read as an outcome. What is taken survives being written. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_task(struct str text)
{
    struct headers headers, again;
    struct task task, same;
    struct str repos, same_repos;
    struct str line, key = STR_NONE;
    struct why why;
    headers_init(&headers);
    while (str_split(&text, '\n', &line)) {
        ptrdiff_t colon = str_find(line, ':');
        if (colon < 0)
            continue;
        struct str name = { line.ptr, (size_t)colon };
        struct str value = str_trim(str_from(line, (size_t)colon + 1));
        if (str_is(name, "key"))
            key = value;
        else if (!headers_put_str(&headers, name, value))
            break;
    }
    if (task_from_record(&task, &repos, key, &headers, &why))
        return;
    if (!headers_get(&headers, "repos").ptr)
        return; /* of the old form: not written any more */
    headers_init(&again);
    task_to_headers(&task, repos, &again);
    if (task_from_record(&same, &same_repos, key, &again, &why) || !str_eq(same_repos, repos) ||
        same.level != task.level || same.kind != task.kind || same.attempt != task.attempt ||
        task_seq_cmp(&same.seq, &task.seq) != 0)
        abort();
}

static void read_outcome(struct str text)
{
    struct outcome outcome, same;
    struct why why;
    struct buf json;
    if (outcome_from_json(text, &outcome, &why))
        return;
    buf_init(&json, 16384);
    outcome_to_json(&outcome, &json);
    if (buf_full(&json) || outcome_from_json(buf_str(&json), &same, &why) ||
        strcmp(same.repo, outcome.repo) != 0 || same.outcome != outcome.outcome ||
        same.at_ms != outcome.at_ms || strcmp(same.error, outcome.error) != 0)
        abort();
    buf_clear(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    read_task(text);
    read_outcome(text);
    return 0;
}

#include "task.h"

#include "ids.h"

#define ATTEMPT_MAX 1000000

static const char *const kind_names[] = {
    [TASK_DISPATCH] = "dispatch",
    [TASK_EXPAND] = "expand",
    [TASK_RERUN_FAILED] = "rerun_failed",
    [TASK_RERUN_ALL] = "rerun_all",
};

static const char *const mark_names[] = {
    [MARK_NONE] = "",
    [MARK_ANSWER_UNSEEN] = "answer_unseen",
    [MARK_CLAIM_EXPIRED] = "claim_expired",
    [MARK_NO_CLAIM] = "no_claim",
};

const char *task_mark_name(enum task_mark mark)
{
    return mark_names[mark];
}

enum task_mark task_mark_parse(struct str text)
{
    for (size_t i = 0; i < sizeof(mark_names) / sizeof(mark_names[0]); i++)
        if (str_is(text, mark_names[i]))
            return (enum task_mark)i;
    return text.len ? MARK_ANSWER_UNSEEN : MARK_NONE;
}

const char *task_kind_name(enum task_kind kind)
{
    return kind_names[kind];
}

void task_seq_text(const struct task_seq *seq, char to[TASK_SEQ_TEXT_SIZE])
{
    to += str_number(to, seq->updated_ms).len;
    *to++ = ':';
    to += str_number(to, seq->partition).len;
    *to++ = ':';
    str_number(to, seq->offset);
}

int task_seq_cmp(const struct task_seq *a, const struct task_seq *b)
{
    if (a->updated_ms != b->updated_ms)
        return a->updated_ms < b->updated_ms ? -1 : 1;
    if (a->partition != b->partition) /* one lane comes from one partition; any fixed order does */
        return a->partition < b->partition ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* A number from 0 up to the separator; *rest begins behind it. */
static bool number_take(struct str *rest, char separator, int64_t *ret)
{
    struct str part;
    return str_split(rest, separator, &part) && str_to_i64(part, ret) && *ret >= 0;
}

static bool seq_parse(struct str text, struct task_seq *ret)
{
    struct task_seq seq;
    int64_t partition;
    if (!number_take(&text, ':', &seq.updated_ms) || !number_take(&text, ':', &partition) ||
        partition > INT32_MAX || !str_to_i64(text, &seq.offset) || seq.offset < 0)
        return false;
    seq.partition = (int32_t)partition;
    *ret = seq;
    return true;
}

static bool kind_parse(struct str text, enum task_kind *ret)
{
    for (size_t i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++)
        if (str_is(text, kind_names[i])) {
            *ret = (enum task_kind)i;
            return true;
        }
    return false;
}

static enum err bad_header(struct why *why, const char *name, struct str value,
                           const char *accepted)
{
    if (!value.ptr)
        return why_set(why, ERR_REFUSE, "header %s is missing; accepted is %s", name, accepted);
    if (value.len > 80)
        value.len = 80;
    return why_set(why, ERR_REFUSE, "header %s is \"%.*s\"; accepted is %s", name, STR_ARG(value),
                   accepted);
}

struct str task_repos(const struct headers *headers)
{
    struct str repos = headers_get(headers, "repos");
    return repos.ptr ? repos : headers_get(headers, "repo");
}

/* 1…max names. */
static bool repos_valid(struct str repos, size_t max)
{
    struct str repo;
    size_t n = 0;
    if (repos.len && repos.ptr[repos.len - 1] == ',')
        return false;
    while (str_split(&repos, ',', &repo))
        if (++n > max || !repo_valid(repo))
            return false;
    return n > 0;
}

enum err task_from_record(struct task *ret, struct str *repos, struct str key,
                          const struct headers *headers, struct why *why)
{
    struct task t = { .event_key = key };
    enum err err = event_from_headers(&t.event, headers, why);
    if (err)
        return err;
    bool old = !headers_get(headers, "repos").ptr;
    struct str all = task_repos(headers), rest = all;
    struct str tier = headers_get(headers, "tier");
    struct str kind = headers_get(headers, "kind");
    struct str seq = headers_get(headers, "seq");
    struct str attempt_text = headers_get(headers, "attempt");
    t.run_id = headers_get(headers, "run_id");
    t.level = level_parse(tier);
    t.maybe_duplicate = task_mark_parse(headers_get(headers, "maybe_duplicate"));
    t.payload_trimmed = headers_get(headers, "payload_trimmed");
    int64_t attempt = 1;

    if (!key.ptr || key.len == 0)
        return why_set(why, ERR_REFUSE, "a task record without a key has no lane");
    if (!t.level)
        return bad_header(why, "tier", tier, "L1, L2, L3 or L4");
    if (!kind_parse(kind, &t.kind))
        return bad_header(why, "kind", kind, "dispatch, expand, rerun_failed or rerun_all");
    if (t.kind == TASK_DISPATCH && !repos_valid(all, old ? 1 : TASK_REPOS_MAX))
        return bad_header(why, "repos", all, "1 to 16 times owner/repo, separated by commas");
    if (t.kind != TASK_DISPATCH && !repos_valid(all, 1))
        return bad_header(why, "repos", all, "one owner/repo for an expand or a re-run");
    bool rerun = t.kind == TASK_RERUN_FAILED || t.kind == TASK_RERUN_ALL;
    if (t.run_id.len > RUN_ID_MAX || (rerun && t.run_id.len == 0))
        return bad_header(why, "run_id", t.run_id, "the id of the run to repeat");
    if (!seq_parse(seq, &t.seq))
        return bad_header(why, "seq", seq, "<updated_ms>:<partition>:<offset>");
    if (attempt_text.ptr &&
        (!str_to_i64(attempt_text, &attempt) || attempt < 1 || attempt > ATTEMPT_MAX))
        return bad_header(why, "attempt", attempt_text, "a number from 1");
    t.attempt = (int)attempt;
    str_split(&rest, ',', &t.repo);
    if (old) /* <downstream>|<event key> */
        t.event_key = str_from(key, (size_t)(str_find(key, '|') + 1));
    *ret = t;
    *repos = all;
    return OK;
}

void task_to_headers(const struct task *task, struct str repos, struct headers *to)
{
    char seq[TASK_SEQ_TEXT_SIZE];
    task_seq_text(&task->seq, seq);
    event_to_headers(&task->event, to);
    headers_put(to, "repos", repos);
    headers_put(to, "tier", str_of(level_name(task->level)));
    headers_put(to, "kind", str_of(kind_names[task->kind]));
    headers_put(to, "run_id", task->run_id);
    headers_put_i64(to, "attempt", task->attempt);
    headers_put_copy(to, "seq", str_of(seq));
    if (task->maybe_duplicate)
        headers_put(to, "maybe_duplicate", str_of(task_mark_name(task->maybe_duplicate)));
    headers_put(to, "payload_trimmed", task->payload_trimmed);
}

bool task_can_be_superseded(const struct task *task)
{
    return task->kind == TASK_DISPATCH && task->event.kind == EVENT_PULL_REQUEST &&
           !task->event.again.len;
}

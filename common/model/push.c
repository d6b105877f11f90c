#include "push.h"

#include <stdlib.h>

#include "../base/mem.h"
#include "ids.h"
#include "json_scan.h"

#define PUSHED_MAX_S 100000000000 /* the year 5138: a number beyond it is no time */
#define RESOLVED     "Pull Request resolved: https://github.com/"

/* ---- the pull request ------------------------------------------------------------------------ */

static struct str first_line(struct str text)
{
    ptrdiff_t end = str_find(text, '\n');
    struct str line = end < 0 ? text : (struct str){ text.ptr, (size_t)end };
    return str_trim(line);
}

/* 0: text is no number of a pull request. */
static int64_t number_of(struct str text)
{
    uint64_t n;
    return str_to_u64(text, &n) && n > 0 && n <= INT32_MAX ? (int64_t)n : 0;
}

/* "Title (#123)": the last parenthesis of the line. */
static int64_t number_at_end(struct str line)
{
    if (!str_ends(line, ")"))
        return 0;
    size_t at = line.len - 1;
    while (at > 0 && line.ptr[at - 1] >= '0' && line.ptr[at - 1] <= '9')
        at--;
    struct str digits = { line.ptr + at, line.len - 1 - at };
    return at >= 2 && line.ptr[at - 1] == '#' && line.ptr[at - 2] == '(' ? number_of(digits) : 0;
}

int64_t commit_pull_request(struct str message)
{
    int64_t pr = number_at_end(first_line(message));
    ptrdiff_t at = str_find_str(message, STR_LIT(RESOLVED));
    if (pr || at < 0)
        return pr;
    struct str url = first_line(str_from(message, (size_t)at + sizeof(RESOLVED) - 1));
    at = str_find_str(url, STR_LIT("/pull/"));
    return at < 0 ? 0 : number_of(str_from(url, (size_t)at + sizeof("/pull/") - 1));
}

/* ---- the commits ----------------------------------------------------------------------------- */

enum { WANT_REF, WANT_BRANCH, WANT_BEFORE, WANT_PUSHED, WANT_ID, WANT_MESSAGE };

struct push_parse {
    char text[WANT_BEFORE + 1][512]; /* by what was wanted */
    int64_t pushed_s;
    struct push_commit *commits;
    size_t n;
};

/* NULL: beyond what is kept. */
static struct push_commit *commit_at(struct push_parse *r, size_t index)
{
    if (index >= PUSH_COMMITS_MAX)
        return NULL;
    while (r->n <= index) {
        r->commits = mem_resize(r->commits, r->n + 1, sizeof(*r->commits));
        r->commits[r->n++] = (struct push_commit){ .pr = 0 };
    }
    return &r->commits[index];
}

static bool found(void *opaque, size_t want, enum json_type type, struct str text, size_t index)
{
    struct push_parse *r = opaque;
    struct push_commit *commit;
    if (want == WANT_PUSHED) { /* a number in push events; a time as text elsewhere */
        if (type != JSON_SCAN_NUMBER || !str_to_i64(text, &r->pushed_s))
            r->pushed_s = 0;
        return true;
    }
    if (type != JSON_SCAN_STRING)
        return true;
    if (want <= WANT_BEFORE)
        (void)str_copy(r->text[want], sizeof(r->text[want]), text);
    else if (!!(commit = commit_at(r, index)) && want == WANT_ID)
        (void)str_copy(commit->sha, sizeof(commit->sha), sha_valid(text) ? text : STR_LIT(""));
    else if (commit) {
        struct str title = str_cut(first_line(text), COMMIT_TITLE_MAX);
        (void)str_copy(commit->title, sizeof(commit->title), title);
        commit->pr = commit_pull_request(text);
    }
    return true;
}

static bool is_of_default_branch(const struct push_parse *r)
{
    struct str ref = str_of(r->text[WANT_REF]);
    return str_starts(ref, "refs/heads/") && r->text[WANT_BRANCH][0] != '\0' &&
           str_is(str_from(ref, sizeof("refs/heads/") - 1), r->text[WANT_BRANCH]);
}

enum err push_read(struct str body, struct push *ret, struct why *why)
{
    static const struct json_want wants[] = {
        [WANT_REF] = { "ref", found, false },
        [WANT_BRANCH] = { "repository.default_branch", found, false },
        [WANT_BEFORE] = { "before", found, false },
        [WANT_PUSHED] = { "repository.pushed_at", found, false },
        [WANT_ID] = { "commits[].id", found, false },
        [WANT_MESSAGE] = { "commits[].message", found, true },
    };
    const struct json_rules rules = { .nul_in_others = true };
    struct push_parse r = { .pushed_s = 0 };
    struct push push = { 0, NULL, 0 };
    enum err err = json_scan(body, &rules, wants, sizeof(wants) / sizeof(wants[0]), &r, why);
    if (err || !is_of_default_branch(&r)) {
        free(r.commits);
        r.commits = NULL;
        r.n = 0;
    }
    if (err)
        return err;
    struct str before = str_of(r.text[WANT_BEFORE]);
    struct str parent = sha_valid(before) ? before : STR_LIT("");
    push.commits = r.commits;
    for (size_t i = 0; i < r.n; i++) {
        if (r.commits[i].sha[0] == '\0') /* no commit */
            continue;
        push.commits[push.n] = r.commits[i];
        (void)str_copy(push.commits[push.n].parent, SHA_MAX + 1, parent);
        parent = str_of(push.commits[push.n++].sha);
    }
    push.pushed_s = r.pushed_s > 0 && r.pushed_s < PUSHED_MAX_S ? r.pushed_s : 0;
    *ret = push;
    return OK;
}

void push_clear(struct push *push)
{
    free(push->commits);
    *push = (struct push){ 0, NULL, 0 };
}

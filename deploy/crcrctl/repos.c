#include "repos.h"

#include <stdio.h>

#include "../../common/base/json_text.h"
#include "out.h"

bool repos_have(struct str repos, struct str repo)
{
    struct str one;
    if (!repo.len)
        return true;
    while (str_split(&repos, ',', &one))
        if (str_eq_nocase(one, repo))
            return true;
    return false;
}

static size_t repos_count(struct str repos)
{
    struct str one;
    size_t n = 0;
    while (str_split(&repos, ',', &one))
        n++;
    return n;
}

void repos_short(struct str repos, char *to, size_t size)
{
    size_t n = repos_count(repos);
    struct str first = STR_LIT("");
    str_split(&repos, ',', &first);
    if (n < 2)
        snprintf(to, size, "%.*s", STR_ARG(first));
    else
        snprintf(to, size, "%.*s +%zu", STR_ARG(first), n - 1);
}

void repos_put(struct buf *to, struct str repos)
{
    struct str one;
    const char *before = "";
    while (str_split(&repos, ',', &one)) {
        buf_puts(to, before);
        clean_line(to, one);
        before = ", ";
    }
}

void repos_put_rest(struct buf *to, struct str repos)
{
    if (repos_count(repos) < 2)
        return;
    buf_puts(to, "; for ");
    repos_put(to, repos);
}

void repos_json(struct buf *to, struct str repos)
{
    struct str one;
    bool alone = repos_count(repos) == 1;
    struct str rest = repos;
    json_put_text(to, "repo", alone && str_split(&rest, ',', &one) ? one : STR_NONE);
    json_put_begin(to, "repos", '[');
    for (const char *before = ""; str_split(&repos, ',', &one); before = ",") {
        buf_puts(to, before);
        json_text_put(to, one);
    }
    buf_putc(to, ']');
}

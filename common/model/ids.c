#include "ids.h"

#include <string.h>

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Letters, digits and the characters of also, at least one and at most max of them. */
static bool made_of(struct str s, const char *also, size_t max)
{
    if (!s.ptr || s.len == 0 || s.len > max)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.ptr[i]) && (s.ptr[i] == '\0' || !strchr(also, s.ptr[i])))
            return false;
    return true;
}

bool delivery_valid(struct str s)
{
    return made_of(s, "-", DELIVERY_MAX);
}

bool repo_valid(struct str s)
{
    if (!s.ptr)
        return false;
    ptrdiff_t slash = str_find(s, '/');
    if (slash < 0)
        return false;
    struct str owner = { s.ptr, (size_t)slash };
    struct str name = str_from(s, (size_t)slash + 1);
    return made_of(owner, "-", 39) && made_of(name, "-._", 100) && !str_is(name, ".") &&
           !str_is(name, "..") &&
           !(name.len >= 4 && str_eq_nocase(str_from(name, name.len - 4), STR_LIT(".git")));
}

void repo_account(char to[REPO_MAX + 1], struct str repo)
{
    ptrdiff_t slash = str_find(repo, '/');
    if (slash >= 0)
        repo.len = (size_t)slash;
    if (!str_lower(to, REPO_MAX + 1, repo))
        to[0] = 0;
}

bool sha_valid(struct str s)
{
    if (!s.ptr || s.len < 7 || s.len > SHA_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_hex(s.ptr[i]))
            return false;
    return true;
}

bool commit_valid(struct str s)
{
    return sha_valid(s) && (s.len == 40 || s.len == 64);
}

bool ciflow_tag_pr(struct str ref, int64_t *pr)
{
    const char prefix[] = "refs/tags/ciflow/";
    if (!str_starts(ref, prefix))
        return false;
    struct str rest = str_from(ref, sizeof(prefix) - 1);
    size_t slash = rest.len; /* the last one: the name between may hold slashes itself */
    while (slash > 0 && rest.ptr[slash - 1] != '/')
        slash--;
    uint64_t number;
    if (slash < 2 || !str_to_u64(str_from(rest, slash), &number))
        return false;
    if (number == 0 || number > INT64_MAX)
        return false;
    *pr = (int64_t)number;
    return true;
}

bool ciflow_label_device(struct str label, struct str *device)
{
    const struct str prefix = STR_LIT("ciflow/crcr/");
    if (label.len <= prefix.len || !str_eq_nocase((struct str){ label.ptr, prefix.len }, prefix))
        return false;
    *device = str_from(label, prefix.len);
    return true;
}

void key_part(struct buf *to, struct str part)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < part.len; i++) {
        unsigned char c = (unsigned char)part.ptr[i];
        if (c != '\0' && (is_alnum((char)c) || strchr("-._~", c))) {
            buf_putc(to, (char)c);
            continue;
        }
        const char escape[] = { '%', hex[c >> 4], hex[c & 15] };
        buf_put(to, (struct str){ escape, sizeof(escape) });
    }
}

void job_key(struct buf *to, struct str repo, struct str delivery, struct str workflow,
             struct str job, struct str check_run_id)
{
    const struct str parts[] = { repo, delivery, workflow, job, check_run_id };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (i > 0)
            buf_putc(to, '/');
        key_part(to, parts[i]);
    }
}

int level_parse(struct str s)
{
    return s.len == 2 && s.ptr[0] == 'L' && s.ptr[1] >= '1' && s.ptr[1] <= '4' ? s.ptr[1] - '0' : 0;
}

const char *level_name(int level)
{
    static const char *const names[] = { "", "L1", "L2", "L3", "L4" };

    return names[level >= 1 && level <= 4 ? level : 0];
}

void check_run_name(struct buf *to, struct str repo, struct str workflow, struct str job)
{
    buf_printf(to, "crcr/%.*s/%.*s/%.*s", STR_ARG(repo), STR_ARG(workflow), STR_ARG(job));
}

#include "whoami.h"

#include "../common/base/json_put.h"
#include "../common/base/json_text.h"
#include "../common/model/ids.h"
#include "oidc.h"

/* What the reports of this repository are not taken for; NULL: they are. As a callback says it. */
static const char *ignored_for(const struct allowlist_entry *entry)
{
    return !entry ? "not_listed" : entry->level < 2 ? "level_1" : NULL;
}

static const char *next_step(const struct allowlist_entry *entry)
{
    if (!entry)
        return "Ask for a line on the allowlist of the upstream: this repository is not on it, so "
               "nothing is sent to it and its reports are ignored.";
    if (entry->level < 2)
        return "Ask for L2 on the allowlist when your runs are stable: at L1 events are sent to "
               "this repository, and its reports are ignored.";
    if (!entry->pull_request)
        return "Nothing to mend: report nightly and periodic runs when they have completed; the "
               "allowlist asks for no other event.";
    return "Nothing to mend: report each job twice, as in_progress and as completed.";
}

void whoami_put(struct buf *to, const struct whoami *w)
{
    const struct allowlist_entry *entry = w->entry;
    struct str repo = entry ? entry->repo : w->repo;
    json_put_begin(to, NULL, '{');
    json_put_text(to, "repository", repo);
    json_put_text(to, "issuer", w->issuer);
    json_put_string(to, "provider", w->provider);
    json_put_string(to, "audience", w->audience);
    json_put_string(to, "level", entry ? level_name(entry->level) : NULL);
    json_put_begin(to, "events", '[');
    static const char *const names[] = { "pull_request", "push", "nightly", "periodic" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (entry && (i < 2 ? entry->pull_request : entry->nightly)) {
            json_put_comma(to);
            json_text_put(to, str_of(names[i]));
        }
    buf_putc(to, ']');
    json_put_bool(to, "reports_taken", !ignored_for(entry));
    json_put_string(to, "reason", ignored_for(entry));
    json_put_name(to, "page");
    if (w->public_url)
        buf_printf(to, "\"%s/repo/%.*s\"", w->public_url, STR_ARG(repo));
    else
        buf_puts(to, "null");
    json_put_string(to, "next_step", next_step(entry));
    buf_putc(to, '}');
}

#include "allowlist_read.h"

#include <stdlib.h>

#include "scan.h"

static void list_take(struct allowlist_read *r, const struct record *record)
{
    struct str source = headers_get(&record->headers, "source");
    struct allowlist *list;
    struct why why;
    if (allowlist_parse(&list, "allowlist", record->value, &why)) {
        r->unreadable++;
        return;
    }
    allowlist_free(r->list);
    free(r->text);
    free(r->source);
    r->list = list;
    r->text = str_dup(record->value);
    r->source = str_dup(source.len ? source : STR_LIT("an unknown source"));
    str_copy(r->sha, sizeof(r->sha), headers_get(&record->headers, "sha"));
    r->fetched_ms = headers_get_i64(&record->headers, "fetched_ms", record->timestamp_ms);
    tenure_add(r->tenure, list, r->fetched_ms);
}

static bool take(void *opaque, const struct record *record)
{
    struct allowlist_read *r = opaque;
    struct demotions *demotions;
    struct why why;
    if (str_is(record->key, "allowlist") && record->value.ptr)
        list_take(r, record);
    if (!str_is(record->key, DEMOTIONS_KEY) || !record->value.ptr)
        return true;
    if (demotions_from_json(record->value, &demotions, &why)) {
        r->unreadable++;
        return true;
    }
    demotions_free(r->demotions);
    r->demotions = demotions;
    return true;
}

enum err allowlist_read(const struct ctl *ctl, struct allowlist_read *ret, struct why *why)
{
    struct scan scan = { .topics = SCAN(TOPIC_ALLOWLIST), .quiet = true };
    *ret = (struct allowlist_read){ .tenure = tenure_new() };
    return scan_all(&scan, ctl, take, ret, why);
}

void allowlist_read_clear(struct allowlist_read *r)
{
    tenure_free(r->tenure);
    allowlist_free(r->list);
    demotions_free(r->demotions);
    free(r->text);
    free(r->source);
}

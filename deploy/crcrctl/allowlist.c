#include "allowlist.h"

#include <stdlib.h>

#include "../../common/crypto/hmac.h"
#include "out.h"
#include "scan.h"
#include "verbs.h"

/* ---- the topic ------------------------------------------------------------------------------ */

/* What cannot be read leaves in force what was, as in the daemons. */
static bool version_take(void *opaque, const struct record *record)
{
    struct allowlist_read *r = opaque;
    struct str source = headers_get(&record->headers, "source");
    struct demotions *demotions;
    struct allowlist *list;
    struct why why;
    if (str_is(record->key, "allowlist") && record->value.ptr) {
        if (allowlist_parse(&list, "allowlist", record->value, &why)) {
            r->unreadable++;
            return true;
        }
        allowlist_free(r->list);
        free(r->text);
        free(r->source);
        r->list = list;
        r->text = str_dup(record->value);
        r->source = str_dup(source.len ? source : STR_LIT("an unknown source"));
        sha256_hex(record->value, r->sha);
        r->fetched_ms = headers_get_i64(&record->headers, "fetched_ms", record->timestamp_ms);
        tenure_add(r->tenure, list, r->fetched_ms);
    } else if (str_is(record->key, DEMOTIONS_KEY) && record->value.ptr) {
        if (demotions_from_json(record->value, &demotions, &why)) {
            r->unreadable++;
            return true;
        }
        demotions_free(r->demotions);
        r->demotions = demotions;
    }
    return true;
}

enum err allowlist_read(const struct ctl *ctl, struct allowlist_read *ret, struct why *why)
{
    struct scan scan = { .topics = SCAN(TOPIC_ALLOWLIST), .quiet = true };
    *ret = (struct allowlist_read){ .tenure = tenure_new() };
    return scan_all(&scan, ctl, version_take, ret, why);
}

void allowlist_read_clear(struct allowlist_read *r)
{
    tenure_free(r->tenure);
    allowlist_free(r->list);
    demotions_free(r->demotions);
    free(r->text);
    free(r->source);
}

/* ---- allowlist check ------------------------------------------------------------------------ */

int verb_allowlist_check(struct ctl *ctl, const struct args *args)
{
    const char *file = args->names[0];
    struct buf CLEANUP(buf_clear) text = BUF_INIT(ALLOWLIST_MAX_BYTES);
    struct allowlist *list;
    size_t n[5] = { 0 };
    struct why why;
    (void)ctl;
    enum err err = ctl_read_file(&text, file, &why);
    if (!err)
        err = allowlist_parse(&list, file, buf_str(&text), &why);
    if (err) {
        buf_reset(&text);
        clean_line(&text, str_of(why.text));
        fprintf(stderr, "%s\n", text.ptr); /* file:line:column first, as compilers do */
        return CTL_PROBLEM;
    }
    for (size_t i = 0; i < allowlist_size(list); i++)
        n[allowlist_at(list, i)->level]++;
    if (args->json)
        put_json(NULL, "{valid:%i repositories:%zu L1:%zu L2:%zu L3:%zu L4:%zu}", true,
                 allowlist_size(list), n[1], n[2], n[3], n[4]);
    else
        printf("%s: valid: %zu repositories (L1 %zu, L2 %zu, L3 %zu, L4 %zu)\n", file,
               allowlist_size(list), n[1], n[2], n[3], n[4]);
    allowlist_free(list);
    return CTL_OK;
}

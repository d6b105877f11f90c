/* Ids of deliveries may be cut short, as those of commits and containers elsewhere. */
#include <string.h>

#include "../../common/base/table.h"
#include "out.h"
#include "scan.h"
#include "verbs.h"

#define GUID_LEN 36 /* GitHub's: nothing to complete */
#define SHOWN    10

struct looking {
    const char *part;
    struct table found; /* ids that begin so */
    bool exact;
};

static bool look_at(void *opaque, const struct record *record)
{
    struct looking *l = opaque;
    struct str id = headers_get(&record->headers, "delivery");
    l->exact = str_is(id, l->part);
    if (str_starts(id, l->part))
        (void)table_make(&l->found, id);
    return !l->exact;
}

int delivery_complete(const struct ctl *ctl, const struct verb *verb, struct args *args)
{
    bool word = verb_words(verb) == OPTION_DELIVERY && args->n_names;
    struct looking l = { .part = word ? args->names[0] : args->delivery, .found.size = 1 };
    struct scan scan = { .topics = SCAN(TOPIC_DLQ) };
    struct buf CLEANUP(buf_clear) list = BUF_INIT(SHOWN * (DELIVERY_MAX + 2));
    struct why why;
    int code = CTL_OK;
    if (!l.part || strlen(l.part) >= GUID_LEN)
        return CTL_OK;
    if (!str_starts(str_of(verb->name), "dlq "))
        scan.topics |= SCAN(TOPIC_EVENTS) | SCAN(TOPIC_DISPATCHES) | SCAN(TOPIC_CALLBACKS);
    enum err err = scan_all(&scan, ctl, look_at, &l, &why);
    size_t n = l.exact ? 0 : table_count(&l.found), i = 0;
    for (void *at = NULL; (at = table_next(&l.found, at)) && i < SHOWN; i++)
        buf_printf(&list, "%s%.*s", i ? ", " : "", STR_ARG(table_key(at)));
    if (err) {
        code = ctl_fail(ctl, err, &why);
    } else if (n > 1) {
        ctl_say(ctl, "%zu deliveries begin with '%s': %s%s", n, l.part, list.ptr,
                n > SHOWN ? ", …" : "");
        code = CTL_USAGE;
    } else if (n) {
        (void)str_copy(args->found, sizeof(args->found), buf_str(&list));
        args->delivery = args->found;
        if (word)
            args->names[0] = args->found;
    }
    table_clear(&l.found);
    return code;
}

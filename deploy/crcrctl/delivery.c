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

/* The only one goes to args->found. */
static int take(const struct ctl *ctl, const struct looking *l, struct args *args)
{
    struct buf CLEANUP(buf_clear) list = BUF_INIT(SHOWN * (DELIVERY_MAX + 2));
    size_t n = table_count(&l->found), i = 0;
    if (l->exact || !n)
        return CTL_OK;
    for (void *at = NULL; (at = table_next(&l->found, at)) && i < SHOWN; i++)
        buf_printf(&list, "%s%.*s", i ? ", " : "", STR_ARG(table_key(at)));
    if (n > 1) {
        ctl_say(ctl, "%zu deliveries begin with '%s': %s%s", n, l->part, list.ptr,
                n > SHOWN ? ", …" : "");
        return CTL_USAGE;
    }
    (void)str_copy(args->found, sizeof(args->found), buf_str(&list));
    return CTL_OK;
}

int delivery_complete(const struct ctl *ctl, const struct verb *verb, struct args *args)
{
    bool word = verb_words(verb) == OPTION_DELIVERY && args->n_names;
    struct looking l = { .part = word ? args->names[0] : args->delivery, .found.size = 1 };
    struct scan scan = { .topics = SCAN(TOPIC_EVENTS) | SCAN(TOPIC_DISPATCHES) |
                                   SCAN(TOPIC_CALLBACKS) | SCAN(TOPIC_DLQ) };
    struct why why;
    if (!l.part || strlen(l.part) >= GUID_LEN)
        return CTL_OK;
    if (str_starts(str_of(verb->name), "dlq "))
        scan.topics = SCAN(TOPIC_DLQ);
    enum err err = scan_all(&scan, ctl, look_at, &l, &why);
    int code = !err ? take(ctl, &l, args) : ctl_fail(ctl, err, &why);
    if (*args->found && word)
        args->names[0] = args->found;
    else if (*args->found)
        args->delivery = args->found;
    table_clear(&l.found);
    return code;
}

#include <stdlib.h>
#include <string.h>

#include "../../common/base/mem.h"
#include "out.h"
#include "scan.h"
#include "summary.h"
#include "verbs.h"

#define LINE_MAX (64u << 10)
/* A topic comes partition by partition; without --follow that many lines are put in order of time.
 * More would be memory without end: what is there is printed, and the order begins anew. */
#define HELD_MAX 100000

struct tail_line {
    int64_t at_ms;
    size_t n; /* the order of reading, for lines of one millisecond */
    char *text;
};

struct tail {
    const struct ctl *ctl;
    const struct args *args;
    unsigned shows; /* of enum summary_shows */
    struct filter filter;
    struct scan scan;
    bool holds; /* what is read now, to put it in order */
    struct tail_line *held;
    size_t n_held, cap_held, n_read;
};

static int newest_first(const void *left, const void *right)
{
    const struct tail_line *a = left, *b = right;
    int order = (a->at_ms < b->at_ms) - (a->at_ms > b->at_ms);
    return order ? order : (a->n < b->n) - (a->n > b->n);
}

/* Puts them in order, and forgets all but the newest. */
static void sort_held(struct tail *a)
{
    size_t last = (size_t)a->args->lines;
    if (a->n_held)
        qsort(a->held, a->n_held, sizeof(*a->held), newest_first);
    while (last && a->n_held > last)
        free(a->held[--a->n_held].text);
}

static void print_held(void *opaque)
{
    struct tail *a = opaque;
    sort_held(a);
    progress_end();
    while (a->n_held > 0) {
        char *text = a->held[--a->n_held].text;
        ctl_put_line(str_of(text), a->args->json);
        free(text);
    }
    a->holds = !a->scan.follow;
    fflush(stdout);
}

static bool record_print(void *opaque, const struct record *record)
{
    struct tail *tail = opaque;
    size_t last = (size_t)tail->args->lines;
    struct summary CLEANUP(summary_clear) s;
    struct buf CLEANUP(buf_clear) line = BUF_INIT(LINE_MAX);
    summary_of(&s, &tail->ctl->topics, record);
    if (!filter_matches(&tail->filter, &s) ||
        (tail->args->until_ms && record->timestamp_ms >= tail->args->until_ms))
        return true;
    if (tail->args->json)
        summary_json(&line, &s);
    else
        summary_line(&line, &s, tail->shows | (out_narrow() ? SUMMARY_NARROW : 0));
    if (!tail->holds) {
        ctl_put_line(buf_str(&line), tail->args->json);
        return !ferror(stdout);
    }
    if (last && tail->n_held == 2 * last)
        sort_held(tail);
    else if (!last && tail->n_held == HELD_MAX)
        print_held(tail);
    if (tail->n_held == tail->cap_held) {
        tail->cap_held = tail->cap_held ? 2 * tail->cap_held : 256;
        tail->held = mem_resize(tail->held, tail->cap_held, sizeof(*tail->held));
    }
    tail->held[tail->n_held++] =
        (struct tail_line){ s.at_ms, tail->n_read++, str_dup(buf_str(&line)) };
    return !ferror(stdout);
}

int verb_tail(struct ctl *ctl, const struct args *args)
{
    struct tail tail = { .ctl = ctl,
                         .args = args,
                         .holds = !args->follow || args->lines,
                         .filter = { .delivery = str_of(args->delivery),
                                     .repo = str_of(args->repo),
                                     .pr = args->pr,
                                     .tier = (int)args->tier },
                         .scan = { .from_ms = args->since_ms, .follow = args->follow } };
    struct scan *scan = &tail.scan;
    struct why why;
    if (args->follow && args->until_ms)
        return ctl_bad(ctl, "--until", "with --follow", "one of them");
    if (!args->n_names)
        scan->topics =
            SCAN(TOPIC_EVENTS) | SCAN(TOPIC_DISPATCHES) | SCAN(TOPIC_CALLBACKS) | SCAN(TOPIC_DLQ);
    for (size_t i = 0; i < args->n_names; i++) {
        enum topic topic = args_topic(ctl, args->names[i]);
        scan->topics |= topic == TOPIC_COUNT ? ~0u : SCAN(topic); /* all */
    }
    /* What one looks for by name may have come already. */
    bool any = !args->delivery && !args->pr && !args->repo && !args->tier && !args->until_ms;
    if (args->lines && !args->since_ms && any)
        scan->from_ms = FOLLOW_LAST(args->lines);
    else if (args->follow && !args->since_ms && !args->delivery && !args->pr && !args->lines)
        scan->from_ms = FOLLOW_END;
    scan->all_read = args->follow && args->lines ? print_held : NULL;
    scan->quiet = scan->follow; /* then the lines themselves show it */
    tail.shows = (scan->follow ? 0 : SUMMARY_DATE) | (args->delivery ? 0 : SUMMARY_DELIVERY) |
                 (ctl_color(stdout) ? SUMMARY_COLOR : 0);
    setvbuf(stdout, NULL, scan->follow ? _IOLBF : _IOFBF, BUFSIZ);
    enum err err = scan_all(scan, ctl, record_print, &tail, &why);
    print_held(&tail);
    free(tail.held);
    return !err ? CTL_OK : ctl_fail(ctl, err, &why);
}

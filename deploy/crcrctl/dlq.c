#include "dlq.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/base/mem.h"
#include "../../common/model/task.h"
#include "out.h"
#include "repos.h"

struct dlq_position dlq_position_of(const struct record *record)
{
    return (struct dlq_position){ record->at.partition, record->at.offset };
}

/* ---- choosing ------------------------------------------------------------------------------- */

bool dlq_matches(const struct dlq_filter *f, const struct topics *topics,
                 const struct dlq_entry *entry)
{
    bool placed = f->n_positions == 0;
    struct str source = str_of(entry->source_topic);
    enum topic topic = topics_find(topics, source);
    for (size_t i = 0; i < f->n_positions && !placed; i++)
        placed = f->positions[i].partition == entry->at.partition &&
                 f->positions[i].offset == entry->at.offset;
    return placed && entry->parked_ms >= f->since_ms &&
           (!f->class.len || str_is(f->class, entry->class)) &&
           repos_have(str_of(entry->repos), f->repo) &&
           (!f->delivery.len || str_is(f->delivery, entry->delivery)) &&
           (!f->source.len || str_eq(f->source, source) ||
            (topic != TOPIC_COUNT && str_is(f->source, topic_base_name(topic))));
}

/* ---- going back ----------------------------------------------------------------------------- */

enum err dlq_unpark(const struct topics *topics, const struct record *record, enum topic *target,
                    struct headers *to, struct why *why)
{
    static const char *const added[] = { "source_topic", "class",         "error", "parked_ms",
                                         "to_topic",     "not_before_ms", "delays" };
    struct str source = headers_get(&record->headers, "source_topic");
    struct str cut = headers_get(&record->headers, "cut");
    enum topic topic = topics_find(topics, source);
    char position[DLQ_POSITION_SIZE];
    if (cut.ptr)
        return why_set(why, ERR_REFUSE, "only a part of it is here: %.*s", STR_ARG(cut));
    if (topic_is_delay(topic)) {
        enum topic delay = topic;
        source = headers_get(&record->headers, "to_topic");
        topic = topics_find(topics, source);
        if (!topic_delay_may(delay, topic))
            return why_set(why, ERR_REFUSE, "from %s nothing goes back to '%.*s'",
                           topics->name[delay], STR_ARG(source.len ? source : STR_LIT("?")));
    }
    if (topic == TOPIC_RESULTS)
        return why_set(why, ERR_REFUSE,
                       "a row does not go back, it could replace a newer one: `crcrctl "
                       "replay --topic callbacks` publishes the newest of the job again; then drop "
                       "this one");
    if (topic != TOPIC_EVENTS && topic != TOPIC_CALLBACKS && topic != TOPIC_RECONCILE &&
        !(topic >= TOPIC_DISPATCH_L1 && topic <= TOPIC_DISPATCH_L4))
        return why_set(why, ERR_REFUSE, "it came from '%.*s', where nothing can be put back",
                       STR_ARG(source.len ? source : STR_LIT("?")));
    headers_copy(to, &record->headers);
    for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++)
        headers_remove(to, added[i]);
    if (headers_get(to, "attempt").ptr)
        headers_set(to, "attempt", STR_LIT("1"));
    headers_remove(to, "dlq");
    dlq_position_text(dlq_position_of(record), position);
    headers_put_copy(to, "dlq", str_of(position));
    *target = topic;
    return OK;
}

void dlq_resolution_headers(const struct record *record, enum dlq_state state, int64_t now_ms,
                            struct headers *to)
{
    static const char *const kept[] = { "event", "action", "delivery", "pr",          "head_sha",
                                        "repo",  "repos",  "tier",     "source_topic" };
    char position[DLQ_POSITION_SIZE];
    headers_init(to);
    dlq_position_text(dlq_position_of(record), position);
    headers_put_copy(to, "resolves", str_of(position));
    headers_put(to, "class", str_of(dlq_state_name(state)));
    headers_put_i64(to, "resolved_ms", now_ms);
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        headers_put(to, kept[i], headers_get(&record->headers, kept[i]));
}

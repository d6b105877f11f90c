/* What is put aside: into the DLQ, or into a delay topic (worker.h). */
#include "../base/clock.h"
#include "../base/log.h"
#include "dlq.h"
#include "retry_ladder.h"
#include "worker.h"

static void log_aside(const struct work *work, const struct headers *headers, enum topic to,
                      const char *class, int64_t wait_ms, const char *error)
{
    const struct record *record = work->record;
    bool dead = to == TOPIC_DLQ;
    log_write(dead ? LOG_WARN : LOG_INFO, dead ? "dead_letter" : "parked",
              (const struct log_field[]){
                  LOG_STR("class", str_of(class)),
                  LOG_STR("delivery", headers_get(headers, "delivery")),
                  LOG_STR("repo", headers_get(headers, "repo")),
                  LOG_STR("repos", headers_get(headers, "repos")),
                  LOG_STR("from", str_of(record->at.topic)),
                  LOG_INT("partition", record->at.partition),
                  LOG_INT("offset", record->at.offset),
                  LOG_STR("to", str_of(work_options(work)->topics->name[to])),
                  LOG_INT("wait_ms", wait_ms),
                  LOG_STR("error", str_of(error)),
                  { .name = NULL },
              });
}

void work_dead(struct work *work, const char *class, const char *error)
{
    work_dead_as(work, &work->record->headers, class, error);
}

void work_dead_as(struct work *work, const struct headers *headers, const char *class,
                  const char *error)
{
    const struct worker_options *o = work_options(work);
    struct dlq_record dlq;
    dlq_record_init(&dlq, work->record, headers, class, error, clock_wall_ms());
    const struct post_count count = { .family = o->metrics.dlq,
                                      .a = str_of(role_name(o->role)),
                                      .b = str_of(class) };
    const struct post post = {
        .topic = TOPIC_DLQ,
        .key = dlq.key,
        .value = dlq.value,
        .lasting = true,
        .headers = &dlq.headers,
        .count = &count,
    };
    work_put(work, &post);
    log_aside(work, headers, TOPIC_DLQ, class, 0, error);
}

bool work_can_park(const struct work *work)
{
    return dlq_fits(work->record->key, work->record->value, &work->record->headers);
}

bool work_park(struct work *work, const struct park *park)
{
    const struct worker_options *o = work_options(work);
    const struct record *record = work->record;
    enum topic to = topics_find(o->topics, str_of(record->at.topic));
    enum topic delay = delay_topic_of(to, park->wait_ms);
    struct headers headers;
    if (!work_can_park(work)) {
        work_dead(work, "refused", "too large to be put off");
        return false;
    }
    headers_copy(&headers, park->headers ? park->headers : &record->headers);
    delay_headers(&headers, record->at.topic, clock_wall_ms() + park->wait_ms, park->error);
    if (park->attempt)
        headers_set_i64(&headers, "attempt", park->attempt);
    const struct post_count count = { .family = o->metrics.delayed, .a = str_of(park->label) };
    const struct post post = {
        .topic = delay,
        .slot = topic_delay_place(to),
        .key = record->key,
        .value = park->value.ptr ? park->value : record->value,
        .lasting = true,
        .headers = &headers,
        .count = &count,
    };
    work_put(work, &post);
    log_aside(work, &headers, delay, park->label, park->wait_ms, park->error);
    return true;
}

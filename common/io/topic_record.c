#include "topic_record.h"

#include <librdkafka/rdkafka.h>
#include <string.h>

#include "../base/mem.h"

static void fill_headers(struct headers *to, const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t len;

    headers_init(to);
    if (rd_kafka_message_headers(message, &headers))
        return;
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &len); i++)
        if (!headers_put_str(to, str_of(name), (struct str){ value ? value : "", len }))
            return;
}

void topic_record_fill(struct record *record, rd_kafka_message_t *message)
{
    record->at = (struct topic_position){ .topic = rd_kafka_topic_name(message->rkt),
                                          .partition = message->partition,
                                          .offset = message->offset };
    record->timestamp_ms = rd_kafka_message_timestamp(message, NULL);
    record->key = (struct str){ message->key, message->key_len };
    record->value = (struct str){ message->payload, message->len };
    fill_headers(&record->headers, message);
}

size_t topic_record_bytes(const struct record *record)
{
    return record->key.len + record->value.len + headers_bytes(&record->headers);
}

static struct str move(char **to, struct str s)
{
    struct str moved = { *to, s.len };

    if (!s.ptr)
        return STR_NONE;
    memcpy(*to, s.ptr, s.len);
    *to += s.len;
    return moved;
}

char *topic_record_detach(struct record *record)
{
    struct headers *h = &record->headers;
    size_t topic_size = strlen(record->at.topic) + 1;
    char *block = mem_alloc(topic_size + topic_record_bytes(record), 1);
    char *to = block;
    record->at.topic = move(&to, (struct str){ record->at.topic, topic_size }).ptr;
    record->key = move(&to, record->key);
    record->value = move(&to, record->value);
    for (size_t i = 0; i < h->n; i++) {
        h->at[i].name = move(&to, h->at[i].name);
        h->at[i].value = move(&to, h->at[i].value);
    }
    return block;
}

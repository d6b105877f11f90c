/* From librdkafka's message to our record. Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_RECORD_H
#define CRCR_IO_TOPIC_RECORD_H

#include "topic_reader.h"

struct rd_kafka_message_s;

/* Fills record with what borrows from message. Headers past HEADERS_MAX are left out. */
void topic_record_fill(struct record *record, struct rd_kafka_message_s *message);
/* Lets record borrow from a malloc'ed block of its own instead, which is returned. */
char *topic_record_detach(struct record *record);
/* Bytes of key, value and headers. */
size_t topic_record_bytes(const struct record *record);

#endif

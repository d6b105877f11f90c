/* Partitions that librdkafka has given up. It asks the group's coordinator once where an assigned
 * partition was committed; refused (the coordinator moved meanwhile, or may not be asked now), it
 * reports an error and never reads the partition, until the next rebalance. Or it does not even
 * report one. Private to common/io/topic_*.c. */
#ifndef CRCR_IO_TOPIC_STANDING_H
#define CRCR_IO_TOPIC_STANDING_H

#include "topic_reader_inner.h"

/* An error was reported of the partition; NULL: of none that is named, so of each perhaps (a
 * coordinator that refuses the group's offsets names none). One that was read before goes on by
 * itself. */
void topic_standing_note(struct topic_reader *r, struct topic_partition *p, int64_t now_mono_ms);
/* Assigns those that stand anew, a second after the first was noted, so that it is asked again. */
void topic_standing_restart(struct topic_reader *r, int64_t now_mono_ms);
#define TOPIC_STANDING_SILENT_MS 60000
/* Notes those that were not read for a minute, without any error; the next time after twice as
 * long, up to an hour (one large record on a slow line is no silence). To be called each second or
 * so: while nobody asks for records there is none. */
void topic_standing_look(struct topic_reader *r, int64_t now_mono_ms);
/* A partition was paused or resumed: what it is paused for does not count. */
void topic_standing_paused(struct topic_partition *p, bool pause, int64_t now_mono_ms);
/* Fills in how many are unread, and for how long. */
void topic_standing_count(const struct topic_reader *r, struct topic_reader_share *share,
                          int64_t now_mono_ms);

#endif

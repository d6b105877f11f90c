/* The topics, their names and what is known of each; deploy/topics/topics.conf is the same table
 * for the tools that create them, and a unit test holds the two together. */
#ifndef CRCR_MODEL_TOPICS_H
#define CRCR_MODEL_TOPICS_H

#include "../base/err.h"
#include "../base/str.h"

enum topic {
    TOPIC_EVENTS,
    TOPIC_DISPATCH_L1,
    TOPIC_DISPATCH_L2,
    TOPIC_DISPATCH_L3,
    TOPIC_DISPATCH_L4,
    TOPIC_DELAY_10S,
    TOPIC_DELAY_1M,
    TOPIC_DELAY_10M,
    TOPIC_DELAY_1H,
    TOPIC_RDELAY_1M, /* the reporter's */
    TOPIC_RDELAY_10M,
    TOPIC_RDELAY_1H,
    TOPIC_DISPATCHES,
    TOPIC_CALLBACKS,
    TOPIC_RECONCILE,
    TOPIC_RESULTS,
    TOPIC_ALLOWLIST,
    TOPIC_DLQ,
    TOPIC_AUDIT, /* crcrctl's: no daemon reads or writes it, and it is the last */
    TOPIC_COUNT,
};

/* Who reads in a consumer group. */
enum group {
    GROUP_ROUTER,
    GROUP_L1,
    GROUP_L2,
    GROUP_L3,
    GROUP_L4,
    GROUP_DELAY,
    GROUP_FOLD,
    GROUP_RECONCILE,
    GROUP_FORWARD,
    GROUP_COUNT,
};

/* All names under one prefix ("crcr." by default), and the consumer groups' ("crcr-router", …; of
 * "staging." they are "staging-router", …, of an empty one as of the default): in a group that two
 * relays of one cluster shared, each restart of the one would rebalance the other. */
/* What an installation calls what it shares with others on the same Kafka and Redis. Of
 * CRCR_TOPIC_PREFIX one dot at the end is dropped: topics keep the prefix as it is, groups begin
 * with the rest and a hyphen, Redis keys with the rest and a colon. Of "crcr." that is crcr.events,
 * crcr-router, crcr:job:…; of "staging" stagingevents, staging-router, staging:job:…; of "" events,
 * crcr-router, crcr:job:…. Prefixes that differ only in that dot are one installation in Redis. */
struct topics {
    char name[TOPIC_COUNT][96];
    char group[GROUP_COUNT][96];
    char key_prefix[96]; /* redis_options.key_prefix */
};
/* ERR_REFUSE when the prefix has characters outside [A-Za-z0-9._-] or is too long. */
enum err topics_init(struct topics *t, const char *prefix, struct why *why) MUST_CHECK;
/* "events", "dispatch.l1", …: the name without the prefix. */
const char *topic_base_name(enum topic topic);
/* The group of that name, as it is or as the default prefix has it ("crcr-router"), or GROUP_COUNT.
 */
enum group topics_find_group(const struct topics *t, struct str name);
/* What the group reads; *n: how many. */
#define GROUP_TOPICS_MAX 7
const enum topic *topics_of_group(enum group group, size_t *n);
/* The topic of a full name, or TOPIC_COUNT. */
enum topic topics_find(const struct topics *t, struct str full_name);
/* level 1…4. */
enum topic topic_of_tier(int level);
enum group group_of_tier(int level);
/* Where in a delay topic waits what goes back to that topic: 1 the first partition, 2 the next, …
 * (new_record.slot). Each has its own, so that no tier waits behind another; where there are
 * fewer partitions L4 is the last to share one. callbacks and reconcile wait in delay topics of
 * their own. 0: nothing is put off for that topic. */
int topic_delay_place(enum topic to);
bool topic_is_delay(enum topic topic);
/* Whether what waits in that delay topic may go back to that topic. The dispatcher alone may write
 * dispatch.* and delay.*; what the reporter may write (rdelay.*) becomes no task. callbacks and
 * reconcile go back from any: older reporters park them in delay.*. */
bool topic_delay_may(enum topic delay, enum topic to);

#endif

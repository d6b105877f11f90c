#include "broker_control.h"

#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define WORDS_MAX      4

struct control {
    rd_kafka_mock_cluster_t *cluster;
    int brokers;
    char text[2 * LINE_MAX_BYTES]; /* what came and is no whole line yet */
    size_t len;
};

const char *broker_control_help(void)
{
    return "With --control a named pipe is made; each line that is written to it is done and "
           "answered on stdout:\n"
           "  errors API NAME COUNT      the next COUNT such requests at each broker fail with "
           "that error\n"
           "  left API                   says how many of those errors are left\n"
           "  coordinator GROUP BROKER   a group's coordinator moves\n"
           "  leader TOPIC N BROKER      the leader of partition N moves\n"
           "  slow BROKER MS             that broker's answers take so long from now on\n"
           "  down BROKER, up BROKER     it goes, and comes back\n"
           "APIs: produce fetch list_offsets offset_commit offset_fetch find_coordinator\n"
           "join_group heartbeat sync_group init_producer_id; errors by librdkafka's names, such "
           "as\nNOT_LEADER_FOR_PARTITION.\n";
}

/* https://kafka.apache.org/protocol#protocol_api_keys; those that the mock cluster can refuse */
static const struct {
    const char *name;
    int16_t key;
} apis[] = {
    { "produce", 0 },           { "fetch", 1 },        { "list_offsets", 2 },
    { "offset_commit", 8 },     { "offset_fetch", 9 }, { "find_coordinator", 10 },
    { "join_group", 11 },       { "heartbeat", 12 },   { "sync_group", 14 },
    { "init_producer_id", 22 },
};

static int16_t api_of(const char *name)
{
    for (size_t i = 0; i < sizeof(apis) / sizeof(apis[0]); i++)
        if (strcmp(apis[i].name, name) == 0)
            return apis[i].key;
    return -1;
}

/* RD_KAFKA_RESP_ERR_NO_ERROR: there is none of that name. */
static rd_kafka_resp_err_t error_of(const char *name)
{
    const struct rd_kafka_err_desc *all;
    size_t n;

    rd_kafka_get_err_descs(&all, &n);
    for (size_t i = 0; i < n; i++)
        if (all[i].name && strcmp(all[i].name, name) == 0)
            return all[i].code;
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static size_t errors_left(const struct control *c, int16_t api)
{
    size_t sum = 0;

    for (int broker = 1; broker <= c->brokers; broker++) {
        size_t one = 0; /* left as it is where there never was an error */
        if (!rd_kafka_mock_broker_error_stack_cnt(c->cluster, broker, api, &one))
            sum += one;
    }
    return sum;
}

/* ---- one line: false when it makes no sense ---------------------------------------------------
 */

static bool do_errors(struct control *c, char **word)
{
    int16_t api = api_of(word[1]);
    rd_kafka_resp_err_t error = error_of(word[2]);
    int count = atoi(word[3]);

    if (api < 0 || !error || count < 1)
        return false;
    for (int broker = 1; broker <= c->brokers; broker++)
        for (int i = 0; i < count; i++)
            rd_kafka_mock_broker_push_request_error_rtts(c->cluster, broker, api, 1, error, 0);
    return true;
}

static bool do_left(struct control *c, char **word)
{
    int16_t api = api_of(word[1]);

    if (api >= 0)
        printf("left %s %zu\n", word[1], errors_left(c, api));
    return api >= 0;
}

static bool do_coordinator(struct control *c, char **word)
{
    return !rd_kafka_mock_coordinator_set(c->cluster, "group", word[1], atoi(word[2]));
}

static bool do_leader(struct control *c, char **word)
{
    return !rd_kafka_mock_partition_set_leader(c->cluster, word[1], atoi(word[2]), atoi(word[3]));
}

static bool do_slow(struct control *c, char **word)
{
    return !rd_kafka_mock_broker_set_rtt(c->cluster, atoi(word[1]), atoi(word[2]));
}

static bool do_down(struct control *c, char **word)
{
    return !rd_kafka_mock_broker_set_down(c->cluster, atoi(word[1]));
}

static bool do_up(struct control *c, char **word)
{
    return !rd_kafka_mock_broker_set_up(c->cluster, atoi(word[1]));
}

static const struct {
    const char *name;
    int words;
    bool (*run)(struct control *, char **);
} orders[] = {
    { "errors", 4, do_errors }, { "left", 2, do_left }, { "coordinator", 3, do_coordinator },
    { "leader", 4, do_leader }, { "slow", 3, do_slow }, { "down", 2, do_down },
    { "up", 2, do_up },
};

static void line_do(struct control *c, char *line)
{
    char *word[WORDS_MAX + 1] = { 0 }, *rest = NULL, whole[2 * LINE_MAX_BYTES];
    int n = 0;
    bool done = false;

    snprintf(whole, sizeof(whole), "%s", line);
    for (char *w = strtok_r(line, " ", &rest); w && n <= WORDS_MAX; w = strtok_r(NULL, " ", &rest))
        word[n++] = w;
    for (size_t i = 0; n && i < sizeof(orders) / sizeof(orders[0]); i++)
        if (n == orders[i].words && strcmp(word[0], orders[i].name) == 0)
            done = orders[i].run(c, word);
    printf("%s: %s\n", done ? "done" : "refused", whole);
    fflush(stdout);
}

static void lines_read(struct control *c, int fd)
{
    ssize_t n = read(fd, c->text + c->len, sizeof(c->text) - 1 - c->len);
    char *line = c->text, *end;

    if (n <= 0)
        return;
    c->len += (size_t)n;
    c->text[c->len] = '\0';
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        line_do(c, line);
    }
    c->len -= (size_t)(line - c->text);
    memmove(c->text, line, c->len);
    if (c->len >= LINE_MAX_BYTES)
        c->len = 0; /* nobody's order is so long */
}

/* O_RDWR: the pipe never ends while nobody writes. */
static enum err pipe_open(const char *path, int *ret, struct why *why)
{
    if (mkfifo(path, 0600) && errno != EEXIST)
        return why_set(why, ERR_STOP, "cannot make %s: %s", path, strerror(errno));
    *ret = open(path, O_RDWR | O_CLOEXEC);
    return *ret >= 0 ? OK : why_set(why, ERR_STOP, "cannot open %s: %s", path, strerror(errno));
}

enum err broker_control_wait(rd_kafka_mock_cluster_t *cluster, int brokers, const char *path,
                             const sigset_t *ends, struct why *why)
{
    struct control control = { .cluster = cluster, .brokers = brokers };
    struct pollfd at[2] = { { .fd = -1, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
    enum err err = path ? pipe_open(path, &at[1].fd, why) : OK;

    if (err)
        return err;
    at[0].fd = signalfd(-1, ends, SFD_CLOEXEC);
    while (at[0].fd >= 0 && !(at[0].revents & POLLIN)) {
        if (poll(at, 2, -1) > 0 && at[1].revents & POLLIN)
            lines_read(&control, at[1].fd);
    }
    if (at[1].fd >= 0)
        close(at[1].fd);
    if (at[0].fd < 0)
        return why_set(why, ERR_STOP, "signalfd: %s", strerror(errno));
    close(at[0].fd);
    return OK;
}

#include "broker.h"

#include <getopt.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../common/io/topic_spec.h"
#include "broker_control.h"

#define BROKERS_MAX 9

struct arguments {
    const char *topics;
    const char *prefix;
    const char *port_file;
    const char *control;
    int brokers;
};

static void usage(FILE *to)
{
    fputs(
        "usage: crcr-sim broker [--topics FILE] [--prefix crcr.] [--port-file FILE] [--brokers N] "
        "[--control PIPE]\n"
        "\n"
        "A Kafka broker in memory, for a first look: it keeps NOTHING when it ends, keeps the "
        "newest\n"
        "5 MiB a partition meanwhile, compacts nothing and makes no topics on request. It picks "
        "its\n"
        "own port, prints host:port as its first line, and writes it to --port-file.\n"
        "\n"
        "  --topics FILE      the topics to make (default deploy/topics/topics.conf)\n"
        "  --prefix PREFIX    in front of each name (default CRCR_TOPIC_PREFIX, else crcr.)\n"
        "  --brokers N        how many (default 1)\n"
        "  --control PIPE     takes orders to fail, for tests; below\n"
        "\n"
        "Ends with 0 on SIGTERM or SIGINT; 1: could not start; 2: usage.\n"
        "\n",
        to);
    fputs(broker_control_help(), to);
}

static int parse(struct arguments *ret, int argc, char **argv)
{
    static const struct option options[] = {
        { "topics", required_argument, NULL, 't' },
        { "prefix", required_argument, NULL, 'p' },
        { "port-file", required_argument, NULL, 'f' },
        { "control", required_argument, NULL, 'c' },
        { "brokers", required_argument, NULL, 'b' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    const char *prefix = getenv("CRCR_TOPIC_PREFIX");
    int option;

    *ret = (struct arguments){ .topics = "deploy/topics/topics.conf",
                               .prefix = prefix ? prefix : "crcr.",
                               .brokers = 1 };
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 't')
            ret->topics = optarg;
        else if (option == 'p')
            ret->prefix = optarg;
        else if (option == 'f')
            ret->port_file = optarg;
        else if (option == 'c')
            ret->control = optarg;
        else if (option == 'b')
            ret->brokers = atoi(optarg);
        else
            return option == 'h' ? 0 : 2;
    }
    return optind == argc && ret->brokers >= 1 && ret->brokers <= BROKERS_MAX ? -1 : 2;
}

static enum err make_topics(rd_kafka_mock_cluster_t *cluster, const struct arguments *arguments,
                            struct why *why)
{
    struct topic_specs specs;
    char name[256];
    enum err err = topic_specs_read(&specs, arguments->topics, why);

    if (err)
        return err;
    for (size_t i = 0; !err && i < specs.n; i++) {
        snprintf(name, sizeof(name), "%s%s", arguments->prefix, specs.at[i].name);
        rd_kafka_resp_err_t code =
            rd_kafka_mock_topic_create(cluster, name, specs.at[i].partitions, 1);
        if (code)
            err = why_set(why, ERR_STOP, "topic %s: %s", name, rd_kafka_err2str(code));
    }
    topic_specs_clear(&specs);
    return err;
}

/* Written aside and renamed: whoever waits for the file never reads half an address. */
static enum err write_address(const char *file, const char *address, struct why *why)
{
    char aside[4096];

    if (!file)
        return OK;
    snprintf(aside, sizeof(aside), "%s.new", file);
    FILE *to = fopen(aside, "w");
    if (!to)
        return why_set(why, ERR_STOP, "cannot write %s", aside);
    fprintf(to, "%s\n", address);
    if (fclose(to) || rename(aside, file))
        return why_set(why, ERR_STOP, "cannot write %s", file);
    return OK;
}

static enum err serve(rd_kafka_mock_cluster_t *cluster, const struct arguments *arguments,
                      const sigset_t *ends, struct why *why)
{
    const char *address = rd_kafka_mock_cluster_bootstraps(cluster);
    enum err err = make_topics(cluster, arguments, why);

    if (!err)
        err = write_address(arguments->port_file, address, why);
    if (err)
        return err;
    printf("%s\n", address);
    printf("IN MEMORY ONLY: this broker keeps nothing once it ends, and the newest 5 MiB a "
           "partition until then.\n");
    fflush(stdout);
    return broker_control_wait(cluster, arguments->brokers, arguments->control, ends, why);
}

static enum err run(const struct arguments *arguments, struct why *why)
{
    char text[256];
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);

    /* The handle only carries the cluster; it would warn that it has no broker to go to. */
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, NULL);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!rk) {
        rd_kafka_conf_destroy(conf);
        return why_set(why, ERR_STOP, "cannot start: %s", text);
    }
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, arguments->brokers);
    enum err err = cluster ? serve(cluster, arguments, &ends, why)
                           : why_set(why, ERR_STOP, "cannot listen on 127.0.0.1");
    if (cluster)
        rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(rk);
    return err;
}

int sim_broker_main(int argc, char **argv)
{
    struct arguments arguments;
    struct why why;
    int code = parse(&arguments, argc, argv);

    if (code >= 0) {
        usage(code ? stderr : stdout);
        return code;
    }
    if (!run(&arguments, &why))
        return 0;
    fprintf(stderr, "crcr-sim broker: %s\n", why.text);
    return 1;
}

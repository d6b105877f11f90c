/* crcrctl: looks into the relay and checks its parts. Each verb is a file of its own. */
#include <string.h>

#include "../../common/daemon/daemon.h"
#include "ctl.h"

enum needs { NOTHING, CONFIG, KAFKA }; /* KAFKA: and the configuration */

static const struct verb {
    const char *name;
    verb_fn *run;
    enum needs needs; /* before it runs */
    const char *help;
    const char *usage;
} verbs[] = {
    { "tail", verb_tail, KAFKA, "what is in the topics, one line a record",
      "usage: crcrctl tail [-f] [--json] [FILTER…] [TOPIC…]\n"
      "\n"
      "  TOPIC            without the prefix (default events dispatches callbacks dlq), or `all`\n"
      "In order of time; what --follow shows, as it comes.\n"
      "\n"
      "  -f, --follow     go on with what comes. Starts now; with --delivery or --pr at the "
      "beginning\n"
      "  --json           one JSON object a line\n"
      "  --since TIME     10m, 2h, 3d ago, or 2026-11-21T03:20:00Z\n"
      "  --delivery ID    --pr NUMBER    --repo OWNER/REPO (downstream)    --tier 1…4\n"
      "Exit codes: 0, 1 a topic is missing, 2 usage, 3 Kafka does not answer.\n" },
    { "trace", verb_trace, KAFKA, "one event's whole life as a timeline",
      "usage: crcrctl trace [--json] [--since TIME] DELIVERY\n"
      "       crcrctl trace [--json] [--since TIME] --pr NUMBER\n"
      "\n"
      "Reads all topics (from their beginning unless --since), shows each step with the time since "
      "the one\n"
      "before, where each downstream stands and why, and, when REDIS_ENDPOINT is set, the check "
      "runs at GitHub.\n"
      "Exit codes: 0, 1 nothing is known of it, 2 usage, 3 Kafka does not answer.\n" },
    { "send-webhook", verb_send_webhook, CONFIG, "sends a file as GitHub would, signed",
      "usage: crcrctl send-webhook FILE [--event pull_request] [--delivery ID] [--url URL]\n"
      "\n"
      "  FILE         the body, sent byte for byte; - reads standard input\n"
      "  --event      X-GitHub-Event (default pull_request)\n"
      "  --delivery   X-GitHub-Delivery (default a new UUID)\n"
      "  --url        default http://127.0.0.1:8080/github/webhook\n"
      "The signature is made with the first secret of GITHUB_APP_SECRET.\n"
      "Exit codes: 0 the answer was 2xx, 1 another answer, 2 usage, 3 no answer.\n" },
    { "send-callback", verb_send_callback, CONFIG, "sends a file as a downstream job would",
      "usage: crcrctl send-callback FILE TOKEN [--url URL]\n"
      "       crcrctl send-callback FILE TOKEN --status in_progress|completed [--conclusion C]\n"
      "                             [--workflow NAME] [--job NAME] [--run-id ID] [--attempt N]\n"
      "\n"
      "  FILE        the body, sent byte for byte; - reads standard input. With --status it is "
      "what\n"
      "              repository_dispatch delivered (client_payload), and the workflow is put in\n"
      "  --url       default http://127.0.0.1:8080/github/callback\n"
      "TOKEN, the OIDC token, is one of\n"
      "  --sim URL --repo OWNER/REPO    minted by crcr-sim (deploy/try)\n"
      "  --key FILE --repo OWNER/REPO [--issuer URL] [--kid KID]\n"
      "              signed with a key (PEM) whose public half the issuer in CRCR_OIDC_ISSUERS "
      "serves\n"
      "  --token-file FILE              as it is, from a file; - reads standard input\n"
      "  --token TOKEN                  the same; other users of the machine can see it\n"
      "Exit codes: 0 the answer was 2xx, 1 another answer, 2 usage, 3 no answer.\n" },
    { "dlq", verb_dlq, KAFKA, "what could not be done: list, show, replay, drop",
      "usage: crcrctl dlq list   [--all] [--json] [FILTER…]\n"
      "       crcrctl dlq show   PARTITION@OFFSET\n"
      "       crcrctl dlq replay [--dry-run] [--rate N/s] PARTITION@OFFSET… | FILTER…\n"
      "       crcrctl dlq drop   [--dry-run] [--rate N/s] PARTITION@OFFSET… | FILTER…\n"
      "\n"
      "  FILTER     --class poison|refused|exhausted  --repo OWNER/REPO  --delivery ID\n"
      "             --source TOPIC (where it came from)  --since TIME (10m, 3d, "
      "2026-11-21T03:20:00Z)\n"
      "  --all      shows also what was replayed or dropped\n"
      "  --dry-run  says what it would do\n"
      "replay puts a record back to the topic it came from, as a first attempt, waits until it is\n"
      "stored, and then notes in the queue that it was; drop only notes it. What is noted is "
      "never\n"
      "taken again, so both can be ended and run again. Killed between storing and noting, replay\n"
      "puts that one record back twice: claims make that harmless for dispatches, and callbacks "
      "may\n"
      "come twice anyhow. A task of a pull request that has a newer dispatch is superseded, one "
      "older\n"
      "than CRCR_MAX_EVENT_AGE skipped; both say so in trace.\n"
      "Exit codes: 0, 1 some cannot be or are left, or nothing is there, 2 usage, 3 Kafka does "
      "not\n"
      "answer.\n" },
    { "replay", verb_replay, KAFKA, "runs stored events or callbacks through the relay once more",
      "usage: crcrctl replay --topic events|callbacks [--delivery ID] [--pr N] [--since TIME]\n"
      "                      [--until TIME] [--again [--yes]] [--dry-run] [--rate N/s] [--resume "
      "ID]\n"
      "\n"
      "Writes what was chosen once more to its topic, under the same key. What was dispatched "
      "before\n"
      "is not dispatched again: its claim stands for 7 days.\n"
      "\n"
      "  --since    10m, 2h, 3d ago, or 2026-11-21T03:20:00Z: when it was written\n"
      "  --again    dispatches all the same: claims, CRCR_MAX_EVENT_AGE and newer events of the "
      "pull\n"
      "             request do not count. Asks first; --yes answers where there is no terminal\n"
      "  --dry-run  says what it would do\n"
      "  --rate     records a second (default: no limit)\n"
      "  --resume   goes on with a replay that was ended; the id and the whole command were "
      "printed\n"
      "Exit codes: 0, 1 nothing like that is there or some are left, 2 usage or not confirmed, 3 "
      "Kafka\n"
      "does not answer.\n" },
    { "rebuild-hud", verb_rebuild_hud, CONFIG, "builds the view in Redis again from the topics",
      "usage: crcrctl rebuild-hud [--wait] [--status] [--force] [--timeout 30m]\n"
      "\n"
      "Takes the view's epoch away, so that crcr-reporter rebuilds the view. Nothing is lost by "
      "it, and\n"
      "dispatching goes on; check runs stand still and pages answer 503 until it is whole. Before, "
      "Kafka\n"
      "is asked whether all that it would be built from can be read.\n"
      "\n"
      "  --wait     follows it until it is whole, at most --timeout (default 30m)\n"
      "  --status   takes nothing away: only says whether it is whole, or follows with --wait\n"
      "  --force    does not ask Kafka before\n"
      "Exit codes: 0, 1 it is not whole yet, 2 usage, 3 Redis or Kafka does not answer.\n" },
    { "redeliver", verb_redeliver, KAFKA, "fetches what GitHub could not hand over",
      "usage: crcrctl redeliver [--since 3d] [--all] [--dry-run] [--rate N/s] [--every 5m]\n"
      "\n"
      "Asks GitHub for the App's webhook deliveries and publishes to events each that no attempt\n"
      "delivered, that is not there already, and that ingest would have accepted. A second run\n"
      "publishes nothing; one that was ended in the middle is gone on with by the next.\n"
      "\n"
      "  --since    how far back to look (default 3d, as long as GitHub keeps them)\n"
      "  --all      also what GitHub did deliver and events no longer holds: after Kafka was lost. "
      "What was\n"
      "             dispatched is not sent again while Redis holds its claims; without Redis it "
      "is\n"
      "  --dry-run  prints what it would publish\n"
      "  --rate     requests to GitHub a second (default 5/s); GitHub's limits are obeyed besides\n"
      "  --every    again and again, until SIGTERM; each round looks back to the last whole one,\n"
      "             once a day all of --since. Ends by itself when Kafka takes nothing from it any "
      "more\n"
      "Needs GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY. Events older than CRCR_MAX_EVENT_AGE are\n"
      "skipped by the router, and their outcome says so.\n"
      "Exit codes: 0, 1 some failed or it was stopped, 2 usage, 3 GitHub or Kafka does not "
      "answer.\n" },
    { "allowlist", verb_allowlist, NOTHING, "checks an allowlist file",
      "usage: crcrctl allowlist check FILE\n"
      "\n"
      "Exit codes: 0 valid, 1 refused (file:line:column: reason), 2 usage.\n" },
    { "lag", verb_lag, KAFKA, "how far each consumer group is",
      "usage: crcrctl lag [--json] [--partitions] [GROUP…]\n"
      "\n"
      "  GROUP          crcr-router, crcr-l1 … (default all)\n"
      "  --partitions   each partition, not only each topic\n"
      "Exit codes: 0, 1 a topic is missing, 2 usage, 3 Kafka does not answer.\n" },
    { "topics", verb_topics, KAFKA, "makes the topics, or compares them with their file",
      "usage: crcrctl topics create [--file FILE] [--replication N]\n"
      "       crcrctl topics check  [--file FILE]\n"
      "\n"
      "  --file         default: deploy/topics/topics.conf as it was when this was built\n"
      "  --replication  copies of each partition; default 3, fewer where there are fewer brokers\n"
      "create makes what is missing and changes nothing that is there; what differs is named.\n"
      "Exit codes: 0, 1 something is missing or differs (create: in more than its partitions), "
      "2 usage, 3 Kafka does not "
      "answer.\n" },
    { "probe", verb_probe, KAFKA, "what stands between a repository and its results",
      "usage: crcrctl probe [--json] [--since TIME] OWNER/REPO\n"
      "\n"
      "Is the App installed? Does a workflow on the default branch listen? Is the repository on "
      "the "
      "allowlist?\n"
      "Its last dispatch, callback and check run; and what to do next.\n"
      "  --since    how far back the topics are looked at (default 14d)\n"
      "Asks GitHub when GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY are set, the view when "
      "REDIS_ENDPOINT is; says what it\n"
      "could not look at.\n"
      "Exit codes: 0 nothing is missing, 1 something is to be done, 2 usage, 3 Kafka, GitHub or "
      "Redis does not answer.\n" },
    { "levels", verb_levels, KAFKA, "who is ready for L3, who is not good enough to stay there",
      "usage: crcrctl levels [--json | --patch] [THRESHOLD…] [--device OWNER/REPO=DEVICE…]\n"
      "       crcrctl levels --apply [--dry-run] [--json] [THRESHOLD…]\n"
      "\n"
      "Reads the topics results and allowlist and says of each repository at L2 whether it is "
      "ready for L3, of\n"
      "each at L3 whether it may stay, with the evidence, and prints a patch of the allowlist.\n"
      "  --patch          only the patch (unified diff, for `git apply`)\n"
      "  --device         where a repository that is ready goes; else CHOOSE-A-DEVICE\n"
      "  --apply          also writes who is demoted and who has recovered to the topic allowlist: "
      "a demoted\n"
      "                   repository gets no new L3 check runs, those that were started are "
      "ended\n"
      "  --dry-run        says what --apply would change, and writes nothing\n"
      "Thresholds: --min-pass-rate 90 --max-timeouts 1 --max-e2e 3h --max-overrun 1 "
      "--overrun-after 3h\n"
      "  --max-queue 30m --min-tenure 30d --ready-window 14d --demote-window 7d (percent; "
      "s, m, h, d)\n"
      "Exit codes: 0, 1 no allowlist or a topic is missing, 2 usage, 3 Kafka does not answer.\n" },
    { "score", verb_score, CONFIG, "the scorecard of a compute platform",
      "usage: crcrctl score [--json] [--since TIME] FILE\n"
      "       crcrctl score --items\n"
      "\n"
      "  FILE      YAML: platform, release, and the items, each with its score, a link as evidence "
      "and a\n"
      "            date; without evidence an item is 0. An example: deploy/crcrctl/README.md\n"
      "  --since   how far back the topic results is read for what the relay measures (default "
      "90d);\n"
      "            only where FILE names a repo, else Kafka is not asked\n"
      "  --items   names and points of all items\n"
      "Exit codes: 0, 1 FILE is refused (file:line:column: reason) or a topic is missing, 2 usage, "
      "3 Kafka\n"
      "does not answer.\n" },
    { "config", verb_config, NOTHING, "the table of all settings",
      "usage: crcrctl config --markdown\n" },
};
#define N_VERBS (sizeof(verbs) / sizeof(*verbs))

static int help(FILE *to)
{
    fputs("usage: crcrctl VERB …; `crcrctl VERB --help` says more\n\n", to);
    for (size_t i = 0; i < N_VERBS; i++)
        fprintf(to, "  %-13s %s\n", verbs[i].name, verbs[i].help);
    fputs("\nKAFKA_BROKERS says where Kafka is; the prefix of the topics is CRCR_TOPIC_PREFIX.\n"
          "Exit codes: 0 done, 1 a problem or nothing found, 2 usage or configuration, 3 not "
          "reachable.\n",
          to);
    return to == stdout ? CTL_OK : CTL_USAGE;
}

static bool asks_help(int argc, char **argv)
{
    return argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

static int run(const struct verb *verb, int argc, char **argv)
{
    struct ctl ctl = { .verb = verb->name, .usage = verb->usage };
    int code = CTL_OK;

    if (asks_help(argc, argv))
        return ctl_usage(&ctl, true);
    if (verb->needs != NOTHING)
        code = ctl_open(&ctl);
    if (code == CTL_OK && verb->needs == KAFKA)
        code = ctl_needs_kafka(&ctl);
    if (code == CTL_OK)
        code = verb->run(&ctl, argc, argv);
    ctl_close(&ctl);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return help(stderr);
    if (asks_help(argc, argv))
        return help(stdout);
    if (!strcmp(argv[1], "--version")) {
        printf("crcrctl %s\n", daemon_version());
        return CTL_OK;
    }
    for (size_t i = 0; i < N_VERBS; i++)
        if (!strcmp(argv[1], verbs[i].name))
            return run(&verbs[i], argc - 1, argv + 1);
    fprintf(stderr, "crcrctl: no verb '%s'\n", argv[1]);
    return help(stderr);
}

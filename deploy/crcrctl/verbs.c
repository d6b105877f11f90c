#include "verbs.h"

#include "dlq.h"

#define OPT(name_, type_, field, ...)                                                              \
    {                                                                                              \
        .name = name_, .type = OPTION_##type_, .at = offsetof(struct args, field),                 \
        .help = __VA_ARGS__                                                                        \
    }
#define VERB(name, run, needs, arguments, min, max, summary, text, codes, ...)                     \
    {                                                                                              \
        name, arguments, min, max, verb_##run, NEEDS_##needs, summary, text, codes,                \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define MANY 1000

/* Options that several verbs have. */
#define JSON OPT("json", FLAG, json, "print JSON")
#define PR   OPT("pr", NUMBER, pr, "only of this pull request", .max = INT32_MAX)
#define DELIVERY                                                                                   \
    OPT("delivery", DELIVERY, delivery, "only of this delivery, or the one that begins so")
#define REPO                                                                                       \
    OPT("repo", REPO, repo, "only of this downstream, also records that are for others besides")
#define SINCE   OPT("since", TIME, since_ms, "only from this moment on")
#define UNTIL   OPT("until", TIME, until_ms, "only what was written before this moment")
#define DRY_RUN OPT("dry-run", FLAG, dry_run, "say what would be done; write nothing")
#define REASON                                                                                     \
    OPT("reason", TEXT, reason, "why, for the topic audit: who, when and what are there anyhow")
#define TOPICS_FILE                                                                                \
    OPT("file", TEXT, file, "default: deploy/topics/topics.conf when this was built",              \
        .value = "FILE")
#define SEND_TO(path)                                                                              \
    OPT("url", TEXT, url, "where to", .initial = "http://127.0.0.1:8080" path, .value = "URL")
#define RATE OPT("rate", RATE, rate, "at most so many records a second")
#define DLQ_FILTER                                                                                 \
    OPT("class", CHOICE, class, "only of this class", .value = "poison|refused|exhausted"), REPO,  \
        DELIVERY, OPT("source", TOPIC, source, "only what came from this topic"), SINCE

#define KAFKA_CODES "1 a topic is missing, 3 Kafka does not answer"

#define NOTED "What was noted is never taken again, so it can be ended and run again."

const struct option_row common_options[] = {
    OPT("brokers", TEXT, brokers, "where Kafka is, in place of KAFKA_BROKERS",
        .value = "HOST:PORT"),
    OPT("redis", TEXT, redis, "where Redis is, in place of REDIS_ENDPOINT", .value = "HOST:PORT"),
    OPT("context", CONTEXT, context, "all settings from that context, none from the environment"),
    { 0 },
};

const struct verb verbs[] = {
    VERB("tail", tail, KAFKA, "[TOPIC…]", 0, MANY, "what is in the topics, one line a record",
         "TOPIC is a topic without the prefix, or `all`; default events dispatches callbacks dlq. "
         "Lines are in order of time; what --follow shows, as it comes.",
         KAFKA_CODES,
         OPT("follow", FLAG, follow,
             "go on with what comes; starts now, with --delivery or --pr at the beginning",
             .letter = 'f'),
         JSON, SINCE, UNTIL, DELIVERY, PR, REPO,
         OPT("tier", NUMBER, tier, "only of this tier", .max = 4),
         OPT("lines", NUMBER, lines, "the last N of what is there; with --follow, before the rest",
             .max = 100000, .letter = 'n')),
    VERB("trace", trace, KAFKA, "[DELIVERY]", 0, 1,
         "every step of one event, and where each downstream is",
         "One of DELIVERY, or how it begins, and --pr. Shows each step with the time since the one "
         "before, where each "
         "downstream is and why, and, when REDIS_ENDPOINT is set, the check runs and on-call "
         "comments at GitHub. A task record is for up to 16 downstreams. Reads the topics from an "
         "hour before the delivery came, if Redis or events knows that, else (and with --pr) all.",
         "1 nothing is known of it, 3 Kafka does not answer", JSON, PR, REPO, SINCE),
    VERB("send-webhook", send_webhook, CONFIG, "FILE", 1, 1, "send a file as GitHub would, signed",
         "FILE is sent byte for byte; - reads standard input. It is signed with the first secret "
         "of GITHUB_APP_SECRET.",
         "0 the answer was 2xx, 1 another answer, 3 no answer", JSON,
         OPT("event", TEXT, event, "X-GitHub-Event", .initial = "pull_request", .value = "EVENT"),
         OPT("delivery", DELIVERY, delivery, "X-GitHub-Delivery; default a new UUID"),
         SEND_TO("/github/webhook")),
    VERB("send-callback", send_callback, CONFIG, "FILE", 1, 1,
         "send a file as a downstream job would",
         "FILE is sent byte for byte; - reads standard input. With --status it is what "
         "repository_dispatch delivered (client_payload), and the workflow is put in.",
         "0 the answer was 2xx, 1 another answer, 3 no answer", JSON, SEND_TO("/github/callback"),
         OPT("token-file", TEXT, token_file, "the OIDC token, from a file; - reads standard input",
             .value = "FILE"),
         OPT("status", CHOICE, state, "put a workflow in, with this status",
             .value = "in_progress|completed"),
         OPT("conclusion", TEXT, conclusion, "its conclusion; default success",
             .value = "CONCLUSION"),
         OPT("workflow", TEXT, workflow, "its name; default crcrctl", .value = "NAME"),
         OPT("job", TEXT, job, "its job_name", .value = "NAME"),
         OPT("run-id", TEXT, run_id, "its run_id; default 1", .value = "ID"),
         OPT("attempt", TEXT, run_attempt, "its run_attempt", .value = "N")),
    VERB("dlq list", dlq_list, KAFKA, "", 0, 0, "what could not be done",
         "Without --all only what is still open.", KAFKA_CODES,
         OPT("all", FLAG, all, "also what was replayed or dropped"), JSON, DLQ_FILTER),
    VERB("dlq show", dlq_show, KAFKA, "PARTITION@OFFSET", 1, 1,
         "all of one record of the dead-letter queue", NULL,
         "1 nothing is there, 3 Kafka does not answer", JSON),
    VERB("dlq replay", dlq_replay, KAFKA, "[PARTITION@OFFSET…]", 0, DLQ_MAX_POSITIONS,
         "put records back to where they came from",
         "Wants positions or a filter. Puts each record back as a first attempt, waits until it is "
         "stored, and then notes in the queue that it was. " NOTED
         " Ended between storing and noting, it puts that one record back twice: claims make that "
         "harmless for dispatches, and callbacks may come twice anyhow.\n"
         "A task of a pull request that has a newer dispatch is superseded, one older than "
         "CRCR_MAX_EVENT_AGE skipped; `crcrctl trace` shows both. Rows of results do not go back: "
         "`crcrctl replay --topic callbacks` publishes the newest of each job again.",
         "1 some cannot be or are left, or nothing is there, 3 Kafka does not answer", JSON,
         DRY_RUN, RATE, REASON, DLQ_FILTER),
    VERB("dlq drop", dlq_drop, KAFKA, "[PARTITION@OFFSET…]", 0, DLQ_MAX_POSITIONS,
         "note that records need nothing more", "Wants positions or a filter. " NOTED,
         "1 some are left, or nothing is there, 3 Kafka does not answer", JSON, DRY_RUN, RATE,
         REASON, DLQ_FILTER),
    VERB("replay", replay, KAFKA, "", 0, 0,
         "run stored events or callbacks through the relay once more",
         "Wants --topic, and one of --delivery, --pr, --since. Writes what was chosen once more to "
         "its topic, under the same key. What was dispatched before is not dispatched again: its "
         "claim is kept for 7 days.",
         "1 nothing like that is there or some are left, 3 Kafka does not answer", JSON,
         OPT("topic", CHOICE, topic, "which topic", .value = "events|callbacks"), DELIVERY, PR,
         SINCE, UNTIL,
         OPT("again", FLAG, again,
             "dispatch all the same: claims, CRCR_MAX_EVENT_AGE and newer events of the pull "
             "request do not count; asks first"),
         OPT("yes", FLAG, yes, "answer --again where there is no terminal"), DRY_RUN, RATE, REASON,
         OPT("resume", DELIVERY, resume,
             "run a replay that was ended again, under the id that it printed: claims and the fold "
             "make harmless what comes twice")),
    VERB("rebuild-hud", rebuild_hud, CONFIG, "", 0, 0,
         "build the view in Redis again from the topics",
         "Removes the view's epoch, so that crcr-reporter rebuilds the view. Nothing is lost by "
         "it, and dispatching goes on; check runs stop and pages answer 503 until it is complete. "
         "It does not get there while a partition of the topics cannot be read: see `crcrctl lag` "
         "before.",
         "1 it is not complete yet, 3 Redis or Kafka does not answer", JSON, REASON,
         OPT("wait", FLAG, wait, "follow it until it is complete, at most --timeout"),
         OPT("status", FLAG, status,
             "remove nothing: only say whether it is complete, or follow with --wait"),
         OPT("timeout", DURATION, timeout_ms, "of --wait", .initial = "30m")),
    VERB("redeliver", redeliver, KAFKA, "", 0, 0,
         "fetch the webhooks that GitHub could not deliver",
         "Asks GitHub for the App's webhook deliveries that failed (4xx, 5xx, no answer) and "
         "publishes to events each that is not there already, and that ingest would have accepted. "
         "A second run publishes nothing; one that was ended in the middle is continued by the "
         "next.\n"
         "Needs GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY. Events older than CRCR_MAX_EVENT_AGE are "
         "skipped by the router, and their outcome says so.",
         "1 some failed or it was stopped, 3 GitHub or Kafka does not answer", JSON,
         OPT("since", DURATION, since_ms, "how far back to look; GitHub keeps 3 days",
             .initial = "3d", .max = 30 * 86400000LL),
         OPT("all", FLAG, all,
             "also what GitHub did deliver (2xx, 3xx) and events no longer holds: after Kafka was "
             "lost; a request for each 100 webhooks. What was dispatched is not sent again while "
             "Redis holds its claims; without Redis it is"),
         DRY_RUN, REASON,
         OPT("rate", RATE, rate, "requests to GitHub a second; GitHub's limits are obeyed besides",
             .initial = "5/s"),
         OPT("every", DURATION, every_ms,
             "again and again, until SIGTERM; each round looks back to the last complete one, once "
             "a day all of --since; ends by itself when Kafka takes nothing from it any more")),
    VERB("app create", app_create, CONFIG, "", 0, 0, "register the GitHub App",
         "Serves a page on 127.0.0.1 whose button sends deploy/github-app/manifest.json to GitHub; "
         "there the owner confirms it. Its key and webhook secret become the files app_private_key "
         "and webhook_secret; nothing is overwritten.",
         "1 a file is there, or GitHub refused, 3 nobody came back from GitHub", JSON,
         OPT("url", TEXT, url, "where GitHub reaches the proxy of ingest: https://HOST",
             .value = "URL"),
         OPT("dir", TEXT, dir, "where the files go", .initial = ".", .value = "DIR"),
         OPT("organization", TEXT, organization,
             "who owns the App; default the owner of UPSTREAM_REPO", .value = "NAME"),
         OPT("personal", FLAG, personal, "your own account owns it, no organization"),
         OPT("port", NUMBER, port, "of the page", .initial = "8765", .max = 65535),
         OPT("timeout", DURATION, timeout_ms, "how long to wait for you", .initial = "1h")),
    VERB("app check", app_check, CONFIG, "", 0, 0, "compare the GitHub App with what is needed",
         "Asks GitHub as the App for its permissions, events, webhook and last delivery. What is "
         "to be done comes first.",
         "1 something is missing, 3 GitHub does not answer", JSON,
         OPT("url", TEXT, url, "https://HOST that the webhook must be at", .value = "URL")),
    VERB("allowlist check", allowlist_check, NOTHING, "FILE", 1, 1, "check an allowlist file",
         "- reads standard input. Prints the number of repositories a tier.",
         "1 refused (file:line:column: reason)", JSON),
    VERB("allowlist save", allowlist_save, KAFKA, "[FILE]", 0, 1, "copy the topic allowlist",
         "FILE is replaced when the copy is complete; a folder gets allowlist-DD.jsonl, DD being "
         "the day of the month. Default standard output. The copy has all versions, for tenure is "
         "counted from them; `allowlist restore` takes it.",
         "1 nothing is there, or FILE cannot be written, 3 Kafka does not answer", JSON,
         OPT("every", DURATION, every_ms, "again and again, until SIGTERM")),
    VERB("allowlist restore", allowlist_restore, KAFKA, "FILE", 1, 1,
         "write a copy to the topic allowlist",
         "FILE is of `allowlist save`; - reads standard input. Nothing is written unless all of it "
         "can be read, and the topic is empty: after `topics create`, before a router starts.",
         "1 refused (FILE:LINE: reason), or the topic is not empty, 3 Kafka does not answer", JSON,
         REASON),
    VERB("lag", lag, KAFKA, "[GROUP…]", 0, MANY, "how far each consumer group is",
         "GROUP is crcr-router, crcr-l1 …; default all. Counts records: one of dispatch.l1 … "
         "dispatch.l4 holds up to 16 tasks.",
         KAFKA_CODES, JSON,
         OPT("partitions", FLAG, partitions, "each partition, not only each topic"),
         OPT("watch", FLAG, watch, "again every 2 s, until Ctrl-C", .letter = 'w')),
    VERB("topics create", topics_create, KAFKA, "", 0, 0, "make the topics",
         "Makes what is missing, raises retention and message size where the file has more, and "
         "names what else differs.",
         "1 something is missing, 3 Kafka does not answer", JSON, TOPICS_FILE,
         OPT("replication", NUMBER, replication,
             "copies of each partition; default 3, fewer where there are fewer brokers",
             .max = 100)),
    VERB("topics check", topics_check, KAFKA, "", 0, 0, "compare the topics with their file", NULL,
         "1 something is missing or differs, 3 Kafka does not answer", JSON, TOPICS_FILE),
    VERB(
        "probe", probe, KAFKA, "OWNER/REPO", 1, 1,
        "what is missing between a repository and its results",
        "Is the App installed? Does a workflow on the default branch listen? Is the repository on "
        "the allowlist? Its last dispatch, callback and check run; and what to do next. Asks "
        "GitHub when GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY are set, the view when "
        "REDIS_ENDPOINT is; says what it could not look at.",
        "0 nothing is missing, 1 something is to be done, 3 Kafka, GitHub or Redis does not answer",
        JSON, OPT("since", TIME, since_ms, "how far back the topics are read", .initial = "14d")),
    VERB("levels", levels, KAFKA, "", 0, 0,
         "who is ready for L3, who is not good enough to stay there",
         "Reads the topics results and allowlist and says of each repository at L2 whether it is "
         "ready for L3, of each at L3 whether it may stay, with the evidence, and proposes which "
         "lines of the allowlist to move.",
         "1 no allowlist or a topic is missing, 3 Kafka does not answer", JSON,
         OPT("pull-request", REPO, pull_request,
             "title and body of the pull request that demotes OWNER/REPO while it is open"),
         OPT("apply", FLAG, apply,
             "also write who is demoted and who has recovered to the topic allowlist: a demoted "
             "repository gets no new L3 check runs; started ones are finished"),
         OPT("dry-run", FLAG, dry_run, "say what --apply would change; write nothing"), REASON,
         OPT("min-pass-rate", PERCENT, rules.min_pass_pct, "successful jobs", .initial = "90"),
         OPT("max-timeouts", PERCENT, rules.max_timeout_pct, "jobs that timed out", .initial = "1"),
         OPT("max-e2e", DURATION, rules.max_e2e_ms, "median time of a run", .initial = "3h"),
         OPT("max-overrun", PERCENT, rules.max_overrun_pct, "jobs over --overrun-after",
             .initial = "1"),
         OPT("overrun-after", DURATION, rules.overrun_ms, "when a job takes too long",
             .initial = "3h"),
         OPT("max-queue", DURATION, rules.max_queue_ms, "mean time to in_progress",
             .initial = "30m"),
         OPT("min-tenure", DURATION, rules.min_tenure_ms, "time at L2", .initial = "30d"),
         OPT("ready-window", DURATION, rules.ready_window_ms, "which jobs count for readiness",
             .initial = "14d"),
         OPT("demote-window", DURATION, rules.demote_window_ms, "which jobs count for demotion",
             .initial = "7d")),
    VERB("score", score, CONFIG, "[FILE]", 0, 1, "the scorecard of a compute platform",
         "FILE is YAML: platform, release, and the items, each with its score, a link as evidence "
         "and a date; without evidence an item is 0. An example: deploy/crcrctl/README.md. Kafka "
         "is asked only where FILE names a repo.",
         "1 FILE is refused (file:line:column: reason) or a topic is missing, 3 Kafka does not "
         "answer",
         JSON,
         OPT("since", TIME, since_ms,
             "how far back the topic results is read for what the relay measures",
             .initial = "90d"),
         OPT("items", FLAG, items, "names and points of all items; without FILE")),
    VERB("context", context, CONFIG, "", 0, 0,
         "the installations that have a name, and the settings in force",
         "Each name is that of a file of settings, ~/.config/crcr/NAME.env, as "
         "deploy/systemd/crcr.env. `default` counts where neither --context, --brokers or --redis "
         "nor KAFKA_BROKERS or REDIS_ENDPOINT is given. Secrets are shown as (set).",
         NULL, JSON),
    VERB("config", config, NOTHING, "", 0, 0, "the table of all settings", NULL, NULL, JSON,
         OPT("markdown", FLAG, markdown, "as Markdown")),
    VERB("manual", manual, NOTHING, "", 0, 0, "this help as a manual page",
         "crcrctl manual | man -l -", NULL, { 0 }),
    VERB("completion", completion, NOTHING, "[" SHELLS "]", 0, 1, "completion for a shell",
         "Of verbs, options, topics and groups. bash: source <(crcrctl completion bash); zsh: the "
         "same with zsh, after compinit; fish: crcrctl completion fish | source",
         NULL, { 0 }),
    VERB("help", help, NOTHING, "[VERB]", 0, 2, "this list, or all of one verb",
         "The same as --help, and --help after a verb.", NULL, { 0 }),
    VERB("version", version, NOTHING, "", 0, 0, "the version of this program", NULL, NULL, JSON),
};
const size_t n_verbs = sizeof(verbs) / sizeof(*verbs);

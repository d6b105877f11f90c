#include "config.h"

#define INGEST     DAEMON_INGEST
#define DISPATCHER DAEMON_DISPATCHER
#define REPORTER   DAEMON_REPORTER
#define CTL        DAEMON_CTL
#define DAEMONS    (INGEST | DISPATCHER | REPORTER)
#define ALL        (DAEMONS | CTL)

const char *const config_of_pytorch[] = { "SECRET_STORE_ARN",    "MAX_DISPATCH_WORKERS",
                                          "MAX_CLEANUP_WORKERS", "IN_PROGRESS_WARN_THRESHOLD",
                                          "OOT_STATUS_TTL",      NULL };

/* Names without the CRCR_ prefix are those that the field already uses. The order is that of --help
 * and of the README. */
const struct property config_properties[] = {
    /* ---- GitHub ---- */
    {
        .name = "GITHUB_APP_ID",
        .daemons = ALL,
        .required = DISPATCHER | REPORTER,
        .help = "ID or client ID of the GitHub App. Ingest refuses webhooks of other Apps when it "
                "is set.",
    },
    {
        .name = "GITHUB_APP_SECRET",
        .daemons = INGEST | CTL,
        .required = INGEST,
        .secret = true,
        .help = "Webhook secret of the App; several, comma-separated, while it is changed.",
    },
    {
        .name = "GITHUB_APP_PRIVATE_KEY",
        .daemons = DISPATCHER | REPORTER | CTL,
        .required = DISPATCHER | REPORTER,
        .secret = true,
        .help = "Private key of the App: RSA, PEM; newlines may be written as \\n.",
    },
    {
        .name = "CRCR_GITHUB_API_URL",
        .type = PROPERTY_URL,
        .daemons = DISPATCHER | REPORTER | CTL,
        .fallback = "https://api.github.com",
        .help = "Root of GitHub's REST API; GitHub Enterprise: https://HOST/api/v3.",
    },
    {
        .name = "CRCR_BUDGET_REQUESTS_HOUR",
        .type = PROPERTY_NUMBER,
        .daemons = DISPATCHER | REPORTER,
        .fallback = "5000",
        .min = 0,
        .max = 1000000000,
        .help = "Requests to GitHub that all replicas together make in an hour for one account; 0: "
                "no limit of ours.",
    },
    {
        .name = "CRCR_BUDGET_POINTS_MINUTE",
        .type = PROPERTY_NUMBER,
        .daemons = DISPATCHER | REPORTER,
        .fallback = "900",
        .min = 0,
        .max = 1000000000,
        .help = "The same, in points (a GET 1, all else 5) a minute.",
    },
    {
        .name = "CRCR_BUDGET_CONTENT_MINUTE",
        .type = PROPERTY_NUMBER,
        .daemons = DISPATCHER | REPORTER,
        .fallback = "80",
        .min = 0,
        .max = 1000000000,
        .help = "The same, of the calls in CRCR_BUDGET_CONTENT_CALLS, a minute.",
    },
    {
        .name = "CRCR_BUDGET_CONTENT_HOUR",
        .type = PROPERTY_NUMBER,
        .daemons = DISPATCHER | REPORTER,
        .fallback = "500",
        .min = 0,
        .max = 1000000000,
        .help = "The same, an hour.",
    },
    {
        .name = "CRCR_BUDGET_CONTENT_CALLS",
        .daemons = DISPATCHER | REPORTER,
        .fallback = "check_run,comment",
        .help = "What counts as content, which GitHub does not say: dispatch, check_run, comment "
                "(their creation), comma-separated, or none.",
    },
    {
        .name = "CRCR_BUDGET_SCOPE",
        .type = PROPERTY_CHOICE,
        .daemons = DISPATCHER | REPORTER,
        .fallback = "account",
        .choices = "account|app",
        .help = "Whether each account that the App is installed for has the limits, or all "
                "together.",
    },
    {
        .name = "CRCR_BUDGET_REPLICAS",
        .type = PROPERTY_NUMBER,
        .daemons = DISPATCHER | REPORTER,
        .fallback = "8",
        .min = 1,
        .max = 10000,
        .help = "While Redis is unavailable each process takes this part of the limits: how many "
                "dispatchers and reporters there are at most.",
    },
    {
        .name = "UPSTREAM_REPO",
        .type = PROPERTY_REPO,
        .daemons = INGEST | DISPATCHER | REPORTER | CTL,
        .fallback = "pytorch/pytorch",
        .help = "The repository whose webhooks are relayed; others are ignored, and not sent.",
    },
    {
        .name = "CRCR_PUSH_REFS",
        .daemons = INGEST | CTL,
        .help = "Refs whose pushes are relayed, such as refs/heads/main, comma-separated; a star "
                "stands for anything. Unset: all.",
    },
    /* ---- who takes part ---- */
    {
        .name = "ALLOWLIST_URL",
        .type = PROPERTY_SOURCE,
        .daemons = DISPATCHER,
        .required = DISPATCHER,
        .help = "The allowlist (deploy/ALLOWLIST.md): a GitHub blob URL (read through the API as "
                "the App), another URL, or a file.",
    },
    {
        .name = "ALLOWLIST_TTL_SECONDS",
        .type = PROPERTY_SECONDS,
        .daemons = DISPATCHER,
        .fallback = "900",
        .min = 1,
        .max = 86400,
        .help = "How often the allowlist and the providers file are asked for again. A push that "
                "changes one has it asked for at once if it is in UPSTREAM_REPO and "
                "CRCR_PUSH_REFS takes its branch.",
    },
    {
        .name = "CI_PROVIDERS_URL",
        .type = PROPERTY_SOURCE,
        .daemons = DISPATCHER,
        .help = "The providers file (deploy/ALLOWLIST.md), which maps pipelines of other CIs to "
                "repositories; forms as for ALLOWLIST_URL.",
    },
    {
        .name = "CRCR_OIDC_ISSUERS",
        .type = PROPERTY_ISSUERS,
        .daemons = INGEST,
        .fallback = "https://token.actions.githubusercontent.com="
                    "https://token.actions.githubusercontent.com/.well-known/jwks,"
                    "https://agent.buildkite.com=https://agent.buildkite.com/.well-known/jwks",
        .help = "Issuers whose OIDC tokens callbacks may carry, each with the URL of its keys. One "
                "other than GitHub and Buildkite may speak for the owners that follow.",
    },
    {
        .name = "CRCR_OIDC_AUDIENCE",
        .daemons = INGEST,
        .fallback = "pytorch-cross-repo-ci-relay",
        .help = "Audience (aud) that these tokens must name: CRCR_AUDIENCE of the downstreams.",
    },
    {
        .name = "CRCR_CALLBACK_TOKEN_KEY",
        .daemons = INGEST | DISPATCHER,
        .secret = true,
        .help = "Keys of the callback_token: kid:secret, comma-separated, secrets of 32 bytes or "
                "more; the first signs, all verify. Unset: callbacks are matched with the dispatch "
                "record only.",
    },
    {
        .name = "RATE_LIMIT_PER_MIN",
        .type = PROPERTY_NUMBER,
        .daemons = INGEST,
        .fallback = "100",
        .min = 1,
        .max = 1000000,
        .help = "Callbacks that one downstream repository may send a minute; what it does not use "
                "is kept for ten minutes.",
    },
    {
        .name = "CRCR_CALLBACK_BYTES_DAY",
        .type = PROPERTY_BYTES,
        .daemons = INGEST,
        .fallback = "1GiB",
        .min = 1 << 20,
        .max = (int64_t)1 << 40,
        .help = "Bytes of callbacks that one downstream repository may send a day (UTC); while "
                "Redis is unavailable each ingest counts by itself.",
    },
    /* ---- Kafka and Redis ---- */
    {
        .name = "KAFKA_BROKERS",
        .type = PROPERTY_SERVERS,
        .daemons = ALL,
        .required = DAEMONS,
        .help = "Kafka brokers to begin with.",
    },
    {
        .name = "CRCR_TOPIC_PREFIX",
        .type = PROPERTY_PREFIX,
        .daemons = ALL,
        .fallback = "crcr.",
        .help =
            "What the names of all topics begin with, and those of the consumer groups and Redis "
            "keys: crcr.events, crcr-router, crcr:job.",
    },
    {
        .name = "REDIS_ENDPOINT",
        .type = PROPERTY_SERVER,
        .daemons = ALL,
        .required = DAEMONS,
        .help = "Redis, which holds claims, limits and the view.",
    },
    {
        .name = "REDIS_LOGIN",
        .daemons = ALL,
        .secret = true,
        .help = "user:password, or a password alone.",
    },
    {
        .name = "CRCR_REDIS_TLS",
        .type = PROPERTY_BOOL,
        .daemons = ALL,
        .fallback = "0",
        .help = "Reach Redis through TLS (needs hiredis 1.0 with hiredis_ssl at build time).",
    },
    {
        .name = "CRCR_REDIS_CA_FILE",
        .type = PROPERTY_FILE,
        .daemons = ALL,
        .help = "PEM file of the certificate authority of Redis. Unset: CRCR_CA_FILE, or the "
                "system's. The certificate must be for the host of REDIS_ENDPOINT.",
    },
    {
        .name = "CRCR_STATUS_TTL",
        .type = PROPERTY_SECONDS,
        .daemons = REPORTER,
        .fallback = "35d",
        .min = 60,
        .max = 400 * 86400,
        .help = "How long the view keeps what it knows of a delivery.",
    },
    {
        .name = "ZOMBIE_TIMEOUT_SECONDS",
        .type = PROPERTY_SECONDS,
        .daemons = REPORTER,
        .fallback = "21600",
        .min = 1,
        .max = 30 * 86400,
        .help = "How long a job may be in progress before it counts as lost.",
    },
    {
        .name = "CRCR_RUN_QUIET_SECONDS",
        .type = PROPERTY_SECONDS,
        .daemons = REPORTER,
        .fallback = "900",
        .min = 1,
        .max = 30 * 86400,
        .help = "A run of another CI than GitHub Actions that does not say run_complete has ended "
                "when nothing was in progress for so long.",
    },
    {
        .name = "CRCR_JOB_CHECKS_MAX",
        .type = PROPERTY_NUMBER,
        .daemons = REPORTER,
        .fallback = "50",
        .min = 1,
        .max = 1000,
        .help = "How many jobs of a downstream have a check run of their own on one commit; the "
                "aggregate lists the others.",
    },
    {
        .name = "CRCR_KNOWN_FAILURES",
        .type = PROPERTY_CHOICE,
        .daemons = REPORTER,
        .fallback = "note",
        .choices = "note|neutral",
        .help = "What follows when a job fails on main too: a note in its check run; with neutral "
                "the aggregate of an L4 whose failed jobs all do so also ends as neutral, which "
                "passes branch protection.",
    },
    {
        .name = "CRCR_SWEEP_SECONDS",
        .type = PROPERTY_SECONDS,
        .daemons = REPORTER,
        .fallback = "60",
        .min = 1,
        .max = 3600,
        .help = "How often jobs are looked for that have been in progress for too long.",
    },
    {
        .name = "CRCR_ONCALL_COMMENTS",
        .type = PROPERTY_BOOL,
        .daemons = REPORTER,
        .fallback = "0",
        .help = "Keep a comment on the pull request that asks the on-calls of an L3 or L4 "
                "downstream to look when its jobs fail. Off where the upstream's own bot does so.",
    },
    /* ---- HUD ---- */
    {
        .name = "HUD_API_URL",
        .type = PROPERTY_URL,
        .daemons = REPORTER,
        .adds = "/crcr/results",
        .help = "The HUD that results are forwarded to, without /crcr/results; unset: none.",
    },
    {
        .name = "HUD_BOT_KEY",
        .daemons = REPORTER,
        .secret = true,
        .help = "Value of the header x-hud-internal-bot.",
    },
    {
        .name = "HUD_MAX_RETRIES",
        .type = PROPERTY_NUMBER,
        .daemons = REPORTER,
        .fallback = "20",
        .min = 0,
        .max = 1000000,
        .help = "How often a result that the HUD answers with 5xx, while it takes others, is sent "
                "again before it goes to the dead-letter queue; 0: for ever, and the lag of "
                "crcr-forward shows it.",
    },
    /* ---- this process ---- */
    {
        .name = "CRCR_LISTEN",
        .type = PROPERTY_LISTEN,
        .daemons = INGEST,
        .fallback = "0.0.0.0:8080",
        .help = "Where webhooks and callbacks come in.",
    },
    {
        .name = "CRCR_HUD_LISTEN",
        .type = PROPERTY_LISTEN,
        .daemons = REPORTER,
        .fallback = "0.0.0.0:8090",
        .help = "Where the HUD pages and their JSON are served.",
    },
    {
        .name = "CRCR_PUBLIC_URL",
        .type = PROPERTY_URL,
        .daemons = INGEST | REPORTER,
        .help = "Where people reach these pages: the check run of a back end links to its box on "
                "the pull request's page (unset: to the CI's log), and /github/whoami to the page "
                "of a repository. Scheme, host and port alone.",
    },
    {
        .name = "CRCR_ADMIN_LISTEN",
        .type = PROPERTY_LISTEN,
        .daemons = DAEMONS,
        .help = "Where /healthz, /readyz and /metrics are served. Unset: 127.0.0.1 with port 9101 "
                "(ingest), 9102 (dispatcher), 9103 (reporter).",
    },
    {
        .name = "CRCR_SHUTDOWN_DELAY",
        .type = PROPERTY_SECONDS,
        .daemons = INGEST | REPORTER,
        .fallback = "0",
        .min = 0,
        .max = 10,
        .help = "After SIGTERM requests are still taken for so long, while /readyz answers 503: "
                "time for a load balancer to forget this replica.",
    },
    {
        .name = "CRCR_ROLES",
        .daemons = DISPATCHER | REPORTER,
        .help = "Roles to run, comma-separated, as --roles; unset: all.",
    },
    {
        .name = "CRCR_MAX_CONNECTIONS_PER_ADDRESS",
        .type = PROPERTY_NUMBER,
        .daemons = INGEST,
        .fallback = "0",
        .min = 0,
        .max = 10000,
        .help = "Connections of one address; more are closed. Each HTTP thread (one a processor, "
                "up to 8) counts on its own. 0: no limit, as behind a proxy.",
    },
    {
        .name = "CRCR_MAX_INFLIGHT_BYTES",
        .type = PROPERTY_BYTES,
        .daemons = INGEST,
        .fallback = "256MiB",
        .min = 1 << 20,
        .max = (int64_t)1 << 40,
        .help = "Request bodies in hand together; for more the oldest incomplete one ends.",
    },
    {
        .name = "CRCR_MAX_EVENT_AGE",
        .type = PROPERTY_SECONDS,
        .daemons = DISPATCHER,
        .fallback = "3d",
        .min = 60,
        .max = 30 * 86400,
        .help = "Older events are skipped, not dispatched.",
    },
    {
        .name = "CRCR_CA_FILE",
        .type = PROPERTY_FILE,
        .daemons = ALL,
        .help = "PEM file of certificate authorities for outbound HTTPS, instead of the "
                "system's.",
    },
    {
        .name = "CRCR_ALLOW_HTTP",
        .type = PROPERTY_BOOL,
        .daemons = ALL,
        .fallback = "0",
        .help = "Accept http:// for every outbound URL, not only to loopback: for closed networks "
                "such as a compose demo.",
    },
    {
        .name = "CRCR_LOG_LEVEL",
        .type = PROPERTY_CHOICE,
        .daemons = DAEMONS,
        .fallback = "info",
        .choices = "debug|info|warn|error",
        .help = "Least level that is logged.",
    },
    {
        .name = "CRCR_LOG_FORMAT",
        .type = PROPERTY_CHOICE,
        .daemons = DAEMONS,
        .fallback = "json",
        .choices = "json|text",
        .help = "json for machines, text for people.",
    },
};

const size_t config_n_properties = sizeof(config_properties) / sizeof(config_properties[0]);

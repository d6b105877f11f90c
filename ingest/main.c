/* crcr-ingest: HTTP in, topics out. Answers 2xx only for what Kafka has acknowledged. */
#include <unistd.h>

#include "metrics.h"
#include "service.h"

static const struct role roles[] = {
    { "ingest", "takes webhooks and callbacks, and writes them to Kafka", service_run },
};

static const struct daemon_spec spec = {
    .daemon = DAEMON_INGEST,
    .name = "crcr-ingest",
    .summary =
        "takes GitHub's webhooks and the callbacks of downstream CI, and keeps them in Kafka",
    .listen_property = "CRCR_LISTEN",
    .admin_default = "127.0.0.1:9101",
    .roles = roles,
    .n_roles = sizeof(roles) / sizeof(roles[0]),
    .families = ingest_metrics,
    .n_families = INGEST_METRICS,
    .start = service_start,
    .stop = service_stop,
};

int main(int argc, char **argv)
{
    return daemon_main(&spec, argc, argv, environ);
}

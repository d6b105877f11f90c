/* crcr-reporter: what happened → the view, the HUD, and check runs on the pull request. */
#include <unistd.h>

#include "reporter.h"

static const struct role roles[] = {
    { "fold", "folds callbacks, dispatches and labels into the view in Redis", fold_run },
    { "reconcile", "makes check runs at GitHub equal to the view", reconcile_run },
    { "forward", "sends results to the HUD's API", forward_run },
    { "sweep", "declares jobs timed out that have been in progress for too long", sweep_run },
    { "web", "serves the HUD pages and their JSON", web_run },
};

static const struct daemon_spec spec = {
    .daemon = DAEMON_REPORTER,
    .name = "crcr-reporter",
    .summary = "keeps the view of all downstream CI, and shows it: pages, HUD, check runs",
    .admin_default = "127.0.0.1:9103",
    .roles = roles,
    .n_roles = sizeof(roles) / sizeof(roles[0]),
    .families = reporter_metrics,
    .n_families = METRIC_COUNT,
    .start = reporter_start,
    .stop = reporter_stop,
};

int main(int argc, char **argv)
{
    return daemon_main(&spec, argc, argv, environ);
}

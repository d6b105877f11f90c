/* A callback body: what a downstream job reports. PURE. */
#ifndef CRCR_MODEL_CALLBACK_H
#define CRCR_MODEL_CALLBACK_H

#include "../base/buf.h"
#include "job_state.h"
#include "limits.h"

/* Whose tokens prove a job of GitHub Actions; their run ids can be asked for at GitHub
 * (https://docs.github.com/en/actions/concepts/security/openid-connect). */
#define CALLBACK_ISSUER_ACTIONS   "https://token.actions.githubusercontent.com"
/* https://buildkite.com/docs/pipelines/security/oidc */
#define CALLBACK_ISSUER_BUILDKITE "https://agent.buildkite.com"

/* The fields of `workflow` and the envelope, validated and with defaults applied. */
struct callback {
    char event_type[32];
    char delivery_id[DELIVERY_MAX + 1];
    char callback_token[4096]; /* "" when absent */
    enum job_state status;     /* JOB_IN_PROGRESS or JOB_COMPLETED */
    char conclusion[32];       /* "" while in progress; of a self-report also when it has none */
    bool no_conclusion;        /* completed without one: conclusion is failure */
    /* What it says of its commit, "" where that is none; the first one counts: callback_commit. */
    char commits[3][SHA_MAX + 1];
    char workflow_name[NAME_MAX_BYTES + 1];
    char job_name[NAME_MAX_BYTES + 1];
    char run_id[RUN_ID_MAX + 1];
    char run_attempt[RUN_ATTEMPT_MAX + 1];
    char check_run_id[RUN_ID_MAX + 1 + RUN_ATTEMPT_MAX + 1];
    char url[URL_MAX + 1];
    char artifact_url[URL_MAX + 1];
    char started_at[40], completed_at[40];
    char environment[256];
    bool run_complete;
    bool has_tests;
    int64_t passed, failed, skipped, total;
    char *failed_tests;       /* JSON array cut to the caps, or NULL; freed by callback_clear */
    int64_t failed_tests_cut; /* how many rows were left out */
    char *triage_verdict; /* JSON object cut to the caps, or NULL (also when structurally wrong) */
    char *warnings; /* JSON array of sentences: what was not taken as it came; NULL: nothing */
};

/* Checks the body (an object; no duplicate keys; nesting, NUL, UTF-8: json_scan's rules) and
 * reads it; of payload only the commits. attempt: what an absent run_attempt is (a proven one, from
 * the claim or the header), "1" when it is no number. ERR_REFUSE with the field and what is
 * accepted. On an error nothing is to be cleared. */
enum err callback_parse(struct str body, struct str attempt, struct callback *ret,
                        struct why *why) MUST_CHECK;
void callback_clear(struct callback *c);
/* nightly and periodic: self-reports. */
bool callback_is_self(const struct callback *c);
/* The upstream commit that a self-report claims to be of; "": it names none, or is no self-report.
 * Nobody vouches for it. Borrowed from c. */
const char *callback_commit(const struct callback *c);

#endif

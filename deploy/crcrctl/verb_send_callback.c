#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/crypto/jwt.h"
#include "../../common/model/callback.h"
#include "../../common/model/ids.h"
#include "file.h"
#include "post.h"

#define AUDIENCE     "pytorch-cross-repo-ci-relay"
#define TOKEN_MAX    (64u << 10)
#define TOKEN_LIFE_S 300
#define NEEDS_TOKEN  "one of --token-file FILE, --token TOKEN, --sim URL, --key FILE"

struct arguments {
    const struct ctl *ctl;
    const char *file, *url;
    const char *token, *token_file, *sim, *key; /* one of them */
    const char *repo;                           /* of the token, for sim and key */
    const char *issuer, *kid;                   /* of key */
    const char *status, *conclusion, *workflow, *job, *run_id, *attempt;
};

/* ---- arguments ---------------------------------------------------------------------------------
 */

/* Each takes a text; `at` is where it goes. */
static const struct choice {
    const char *name;
    size_t at;
} choices[] = {
    { "url", offsetof(struct arguments, url) },
    { "token", offsetof(struct arguments, token) },
    { "token-file", offsetof(struct arguments, token_file) },
    { "sim", offsetof(struct arguments, sim) },
    { "key", offsetof(struct arguments, key) },
    { "repo", offsetof(struct arguments, repo) },
    { "issuer", offsetof(struct arguments, issuer) },
    { "kid", offsetof(struct arguments, kid) },
    { "status", offsetof(struct arguments, status) },
    { "conclusion", offsetof(struct arguments, conclusion) },
    { "workflow", offsetof(struct arguments, workflow) },
    { "job", offsetof(struct arguments, job) },
    { "run-id", offsetof(struct arguments, run_id) },
    { "attempt", offsetof(struct arguments, attempt) },
};
#define N_CHOICES (sizeof(choices) / sizeof(*choices))

static int check(const struct ctl *ctl, const struct arguments *a)
{
    int tokens = !!a->token + !!a->token_file + !!a->sim + !!a->key;

    if (tokens != 1)
        return ctl_bad(ctl, "token", tokens ? "several" : "", NEEDS_TOKEN);
    if ((a->sim || a->key) && (!a->repo || !repo_valid(str_of(a->repo))))
        return ctl_bad(ctl, "--repo", a->repo ? a->repo : "", "OWNER/REPO, whose token it is");
    if (a->status && strcmp(a->status, "in_progress") != 0 && strcmp(a->status, "completed") != 0)
        return ctl_bad(ctl, "--status", a->status, "in_progress or completed");
    if (a->conclusion && !conclusion_valid(str_of(a->conclusion)))
        return ctl_bad(ctl, "--conclusion", a->conclusion, "a conclusion of GitHub's");
    if (!a->status && (a->conclusion || a->workflow || a->job || a->run_id || a->attempt))
        return ctl_bad(ctl, "--status", "", "in_progress or completed, with what is put in");
    return CTL_OK;
}

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    struct option options[N_CHOICES + 1] = { { NULL, 0, NULL, 0 } };
    int option, index;

    *ret = (struct arguments){ .ctl = ctl,
                               .url = "http://127.0.0.1:8080/github/callback",
                               .issuer = "https://token.actions.githubusercontent.com" };
    for (size_t i = 0; i < N_CHOICES; i++)
        options[i] = (struct option){ choices[i].name, required_argument, NULL, 'x' };
    while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
        if (option != 'x')
            return ctl_usage(ctl, false);
        memcpy((char *)ret + choices[index].at, &optarg, sizeof(optarg));
    }
    if (optind + 1 != argc)
        return ctl_usage(ctl, false);
    ret->file = argv[optind];
    return check(ctl, ret);
}

/* ---- the body ----------------------------------------------------------------------------------
 */

static void put(json_t *to, const char *name, const char *value)
{
    if (value)
        json_object_set_new(to, name, json_string(value));
}

/* The file is a client_payload: the workflow is put in. */
static enum err workflow_add(const struct arguments *a, struct buf *body, struct why *why)
{
    json_error_t error;
    json_t *root =
        json_loadb(body->ptr ? body->ptr : "", body->len, JSON_REJECT_DUPLICATES, &error);
    json_t *workflow = json_pack("{s:s, s:s}", "schema_version", "1", "status", a->status);
    char *CLEANUP(mem_free_char) text = NULL;

    if (!json_is_object(root)) {
        json_decref(root);
        json_decref(workflow);
        return why_set(why, ERR_REFUSE, "%s: not a JSON object: %s", a->file, error.text);
    }
    put(workflow, "name", a->workflow ? a->workflow : "crcrctl");
    put(workflow, "job_name", a->job);
    put(workflow, "run_id", a->run_id ? a->run_id : "1");
    put(workflow, "run_attempt", a->attempt);
    put(workflow, "conclusion",
        a->conclusion                         ? a->conclusion
        : strcmp(a->status, "completed") == 0 ? "success"
                                              : NULL);
    json_object_set_new(root, "workflow", workflow);
    text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    buf_reset(body);
    buf_puts(body, text);
    return OK;
}

static enum err body_read(const struct arguments *a, struct buf *to, struct why *why)
{
    enum err err = file_read(to, a->file, why);
    return err == OK && a->status ? workflow_add(a, to, why) : err;
}

/* ---- the token ---------------------------------------------------------------------------------
 */

/* An id as text; NULL when it is neither a string nor a whole number. */
static json_t *id_as_text(const json_t *id)
{
    return json_is_integer(id)  ? json_sprintf("%lld", (long long)json_integer_value(id))
           : json_is_string(id) ? json_string(json_string_value(id))
                                : NULL;
}

/* The claims run_id and run_attempt that GitHub's token for this report has. The body is sent as it
 * is: what is missing or malformed there is for the relay to say. */
static json_t *run_claims_of(struct str body)
{
    json_t *root = json_loadb(body.ptr ? body.ptr : "", body.len, 0, NULL);
    json_t *workflow = json_object_get(root, "workflow"), *claims = json_object();
    json_t *run_id = id_as_text(json_object_get(workflow, "run_id"));
    json_t *attempt = id_as_text(json_object_get(workflow, "run_attempt"));

    json_object_set_new(claims, "run_id", run_id ? run_id : json_string("1"));
    json_object_set_new(claims, "run_attempt", attempt ? attempt : json_string("1"));
    json_decref(root);
    return claims;
}

/* The simulator is an issuer that the relay of deploy/try trusts. */
static enum err token_of_sim(const struct arguments *a, json_t *run, char **ret, struct why *why)
{
    struct buf CLEANUP(buf_clear) url;
    struct post_answer answer;
    struct headers headers;
    json_t *ask = json_pack("{s:s, s:O}", "repo", a->repo, "claims", run);
    char *CLEANUP(mem_free_char) body = json_dumps(ask, JSON_COMPACT);

    json_decref(ask);
    buf_init(&url, 2048);
    buf_printf(&url, "%s/_sim/oidc", a->sim);
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    enum err err = post_wait(a->ctl, "crcrctl", url.ptr, &headers, str_of(body), &answer, why);
    if (err == OK && answer.status == 200) {
        json_t *root = json_loadb(answer.text.ptr, answer.text.len, 0, NULL);
        *ret = mem_dup(json_string_value(json_object_get(root, "token")));
        json_decref(root);
        err = *ret ? OK : why_set(why, ERR_REFUSE, "%s: no token in the answer", url.ptr);
    } else if (err == OK) {
        err = why_set(why, answer.status ? ERR_REFUSE : ERR_RETRY, "%s: %d %.300s", url.ptr,
                      answer.status, buf_str(&answer.text).ptr);
    }
    buf_clear(&answer.text);
    return err;
}

/* The claims that ingest asks for, as GitHub's own tokens have them. */
static char *claims_of(const struct arguments *a, json_t *run)
{
    struct str owner = str_of(a->repo);
    int64_t now_s = clock_wall_ms() / 1000;

    owner.len = (size_t)str_find(owner, '/');
    json_t *claims = json_pack("{s:s, s:s, s:s, s:s%, s:s, s:I, s:I, s:I}", "iss", a->issuer, "aud",
                               AUDIENCE, "repository", a->repo, "repository_owner", owner.ptr,
                               owner.len, "sub", "crcrctl", "iat", (json_int_t)now_s, "nbf",
                               (json_int_t)now_s, "exp", (json_int_t)(now_s + TOKEN_LIFE_S));
    json_object_update(claims, run);
    char *text = json_dumps(claims, JSON_COMPACT);
    json_decref(claims);
    return text;
}

static enum err token_of_key(const struct arguments *a, json_t *run, char **ret, struct why *why)
{
    struct buf CLEANUP(buf_clear) pem;
    char *CLEANUP(mem_free_char) claims = claims_of(a, run);
    struct jwt_key *key;

    buf_init(&pem, TOKEN_MAX);
    enum err err = file_read(&pem, a->key, why);
    if (err == OK)
        err = jwt_key_new(&key, buf_str(&pem), why);
    if (err != OK)
        return err;
    err = jwt_sign_rs256(key, str_of(a->kid), str_of(claims), ret, why);
    jwt_key_free(key);
    return err;
}

static enum err token_get(const struct arguments *a, struct str body, char **ret, struct why *why)
{
    struct buf CLEANUP(buf_clear) text;
    enum err err = OK;

    buf_init(&text, TOKEN_MAX);
    if (a->sim || a->key) {
        json_t *run = run_claims_of(body);
        err = a->sim ? token_of_sim(a, run, ret, why) : token_of_key(a, run, ret, why);
        json_decref(run);
        return err;
    }
    if (a->token)
        buf_puts(&text, a->token);
    else
        err = file_read(&text, a->token_file, why);
    if (err == OK)
        *ret = str_dup(str_trim(buf_str(&text)));
    return err;
}

/* ---- the verb ----------------------------------------------------------------------------------
 */

static enum err post(const struct arguments *a, struct str body, const char *token,
                     struct post_answer *answer, struct why *why)
{
    struct buf CLEANUP(buf_clear) bearer;
    struct headers headers;

    buf_init(&bearer, 2 * TOKEN_MAX);
    buf_printf(&bearer, "Bearer %s", token);
    headers_init(&headers);
    headers_put(&headers, "Content-Type", STR_LIT("application/json"));
    headers_put(&headers, "Authorization", buf_str(&bearer));
    return post_wait(a->ctl, "crcrctl", a->url, &headers, body, answer, why);
}

int verb_send_callback(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct post_answer answer = { .done = false };
    struct buf CLEANUP(buf_clear) body;
    char *CLEANUP(mem_free_char) token = NULL;
    struct why why;
    int code = parse(ctl, &arguments, argc, argv);

    buf_init(&body, CALLBACK_MAX_BYTES + 1); /* one more, to see how a too large one is refused */
    if (code != CTL_OK)
        return code;
    enum err err = body_read(&arguments, &body, &why);
    if (err == OK)
        err = token_get(&arguments, buf_str(&body), &token, &why);
    if (err == OK)
        err = post(&arguments, buf_str(&body), token, &answer, &why);
    code = err == OK ? post_print(ctl, arguments.url, "callback", "crcr-ingest", &answer)
                     : ctl_fail(ctl, err, &why);
    buf_clear(&answer.text);
    return code;
}

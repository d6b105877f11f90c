#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/base/mem.h"
#include "../../common/crypto/hmac.h"
#include "../../common/github/contents.h"
#include "../../common/io/topic_writer.h"
#include "../../common/model/ids.h"
#include "levels_report.h"
#include "scan.h"

#define TEXT_MAX     (64u << 20)
#define SLACK_MS     (24 * 3600 * (int64_t)1000)
#define DEVICES_MAX  100
#define DEFAULT_PATH ".github/allowlist.yml"

enum output { AS_TEXT, AS_JSON, AS_PATCH };

struct arguments {
    enum output output;
    bool apply, dry_run;
    struct level_rules rules;
    struct levels_device devices[DEVICES_MAX];
    size_t n_devices;
};

/* What the topics say. */
struct reading {
    const char *allowlist_topic;
    struct tenure *tenure;
    struct levels *jobs;
    struct allowlist *list; /* in force; NULL: none yet */
    char *text, *source, sha[65];
    int64_t fetched_ms;
    struct demotions *demotions; /* in force; NULL: none */
    size_t unreadable;
};

/* ---- arguments ---------------------------------------------------------------------------------
 */

static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "patch", no_argument, NULL, 'p' },
    { "apply", no_argument, NULL, 'a' },
    { "dry-run", no_argument, NULL, 'n' },
    { "device", required_argument, NULL, 'd' },
    { "min-pass-rate", required_argument, NULL, 'R' },
    { "max-overrun", required_argument, NULL, 'O' },
    { "max-timeouts", required_argument, NULL, 'T' },
    { "max-e2e", required_argument, NULL, 'E' },
    { "max-queue", required_argument, NULL, 'Q' },
    { "overrun-after", required_argument, NULL, 'A' },
    { "min-tenure", required_argument, NULL, 'M' },
    { "ready-window", required_argument, NULL, 'W' },
    { "demote-window", required_argument, NULL, 'D' },
    { NULL, 0, NULL, 0 },
};

static int64_t *duration_of(struct level_rules *rules, int option)
{
    switch (option) {
    case 'E':
        return &rules->max_e2e_ms;
    case 'Q':
        return &rules->max_queue_ms;
    case 'A':
        return &rules->overrun_ms;
    case 'M':
        return &rules->min_tenure_ms;
    case 'W':
        return &rules->ready_window_ms;
    case 'D':
        return &rules->demote_window_ms;
    default:
        return NULL;
    }
}

static double *percent_of(struct level_rules *rules, int option)
{
    return option == 'R'   ? &rules->min_pass_pct
           : option == 'O' ? &rules->max_overrun_pct
           : option == 'T' ? &rules->max_timeout_pct
                           : NULL;
}

static int percent_parse(const struct ctl *ctl, const char *name, const char *text, double *ret)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "%") != 0) || !(value >= 0 && value <= 100))
        return ctl_bad(ctl, name, text, "a percentage from 0 to 100, such as 90 or 0.5");
    *ret = value;
    return CTL_OK;
}

static int device_parse(const struct ctl *ctl, struct arguments *to, const char *text)
{
    struct str repo = str_of(text);
    ptrdiff_t equals = str_find(repo, '=');
    struct str device = equals < 0 ? STR_NONE : str_from(repo, (size_t)equals + 1);
    if (equals >= 0)
        repo.len = (size_t)equals;
    if (!repo_valid(repo) || device.len == 0 || to->n_devices == DEVICES_MAX)
        return ctl_bad(ctl, "--device", text, "OWNER/REPO=DEVICE, at most 100 times");
    to->devices[to->n_devices++] = (struct levels_device){ repo, device };
    return CTL_OK;
}

static int option_take(const struct ctl *ctl, struct arguments *to, int option, const char *name)
{
    int64_t *duration = duration_of(&to->rules, option);
    double *percent = percent_of(&to->rules, option);
    if (duration)
        return ctl_duration(ctl, name, optarg, duration);
    if (percent)
        return percent_parse(ctl, name, optarg, percent);
    if (option == 'd')
        return device_parse(ctl, to, optarg);
    if (option == 'j')
        to->output = AS_JSON;
    else if (option == 'p')
        to->output = AS_PATCH;
    else if (option == 'a')
        to->apply = true;
    else if (option == 'n')
        to->dry_run = true;
    else
        return ctl_usage(ctl, false);
    return CTL_OK;
}

static int parse(const struct ctl *ctl, struct arguments *ret, int argc, char **argv)
{
    char name[32];
    int option, index = 0, code = CTL_OK;
    *ret = (struct arguments){ .output = AS_TEXT };
    level_rules_init(&ret->rules);
    while (code == CTL_OK && (option = getopt_long(argc, argv, "", options, &index)) != -1) {
        snprintf(name, sizeof(name), "--%s", options[index].name);
        code = option_take(ctl, ret, option, name);
    }
    if (code != CTL_OK)
        return code;
    if (optind != argc || (ret->dry_run && !ret->apply) || (ret->apply && ret->output == AS_PATCH))
        return ctl_usage(ctl, false);
    return CTL_OK;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static void list_take(struct reading *r, const struct record *record)
{
    struct allowlist *list;
    struct why why;
    int64_t at_ms = headers_get_i64(&record->headers, "fetched_ms", record->timestamp_ms);
    if (allowlist_parse(&list, "allowlist", record->value, &why)) {
        r->unreadable++; /* what was in force stays, as in the daemons */
        return;
    }
    allowlist_free(r->list);
    free(r->text);
    free(r->source);
    r->list = list;
    r->text = str_dup(record->value);
    r->source = str_dup(headers_get(&record->headers, "source"));
    str_copy(r->sha, sizeof(r->sha), headers_get(&record->headers, "sha"));
    r->fetched_ms = at_ms;
    tenure_add(r->tenure, list, at_ms);
}

static void demotions_take(struct reading *r, const struct record *record)
{
    struct demotions *demotions;
    struct why why;
    if (demotions_from_json(record->value, &demotions, &why)) {
        r->unreadable++;
        return;
    }
    demotions_free(r->demotions);
    r->demotions = demotions;
}

static bool allowlist_found(void *opaque, const struct record *record)
{
    struct reading *r = opaque;
    if (str_is(record->key, "allowlist") && record->value.ptr)
        list_take(r, record);
    else if (str_is(record->key, DEMOTIONS_KEY) && record->value.ptr)
        demotions_take(r, record);
    return true;
}

static bool result_found(void *opaque, const struct record *record)
{
    struct reading *r = opaque;
    struct result_record row;
    struct why why;
    if (!record->value.ptr)
        return true;
    if (result_record_from_json(record->value, &row, &why)) {
        r->unreadable++;
        return true;
    }
    levels_put(r->jobs, &row, record->timestamp_ms);
    result_record_clear(&row);
    return true;
}

static void reading_clear(struct reading *r)
{
    tenure_free(r->tenure);
    levels_free(r->jobs);
    allowlist_free(r->list);
    demotions_free(r->demotions);
    free(r->text);
    free(r->source);
}

/* The allowlist from its first version on, for tenure. Results from a day before the longer window:
 * a row is written when its job ends, or later. */
static enum err read_topics(const struct ctl *ctl, const struct level_rules *rules, int64_t now_ms,
                            struct reading *r, struct why *why)
{
    struct scan list = { .quiet = true }, results = { .quiet = false };
    int64_t window_ms = rules->ready_window_ms > rules->demote_window_ms ? rules->ready_window_ms
                                                                         : rules->demote_window_ms;
    *r = (struct reading){ .tenure = tenure_new(), .jobs = levels_new() };
    scan_add(&list, ctl, TOPIC_ALLOWLIST);
    scan_add(&results, ctl, TOPIC_RESULTS);
    scan_from(&results, now_ms - window_ms - SLACK_MS);
    enum err err = scan_run(&list, ctl, allowlist_found, r, why);
    if (err == OK && !r->list)
        return why_set(why, ERR_REFUSE, "no allowlist has been published to %s yet",
                       ctl->topics.name[TOPIC_ALLOWLIST]);
    if (err == OK)
        err = scan_run(&results, ctl, result_found, r, why);
    if (err == OK && ctl_stopped())
        err = why_set(why, ERR_REFUSE, "interrupted: not all was read");
    return err;
}

/* ---- what follows ------------------------------------------------------------------------------
 */

static enum err demotions_write(const struct ctl *ctl, const struct demotions *wanted,
                                int64_t now_ms, struct why *why)
{
    const struct topic_writer_options writing = { .kafka = ctl->kafka };
    struct topic_writer *writer;
    struct topic_position at;
    struct headers headers;
    struct buf CLEANUP(buf_clear) json;
    char sha[SHA256_HEX_SIZE];
    buf_init(&json, DEMOTIONS_MAX_BYTES);
    demotions_to_json(wanted, now_ms, &json);
    if (buf_full(&json))
        return why_set(why, ERR_REFUSE, "the record of demotions would be too large");
    sha256_hex(buf_str(&json), sha);
    headers_init(&headers);
    headers_put(&headers, "source", STR_LIT("crcrctl levels"));
    headers_put(&headers, "sha", str_of(sha));
    headers_put_i64(&headers, "fetched_ms", now_ms);
    enum err err = topic_writer_new(&writer, &writing, why);
    if (err != OK)
        return err;
    err = topic_writer_put_wait(writer, ctl->topics.name[TOPIC_ALLOWLIST], STR_LIT(DEMOTIONS_KEY),
                                buf_str(&json), &headers, &at, why);
    topic_writer_free(writer);
    return err;
}

/* What changes, one line a repository. In JSON mode they go to stderr, so that stdout stays JSON.
 */
static void changes_tell(FILE *to, const struct demotions *was, const struct demotions *is)
{
    for (size_t i = 0; i < demotions_size(is); i++)
        if (!demotions_find(was, str_of(demotions_at(is, i)->repo)))
            fprintf(to, "demoted    %s: %s\n", demotions_at(is, i)->repo,
                    demotions_at(is, i)->reason);
    for (size_t i = 0; i < demotions_size(was); i++)
        if (!demotions_find(is, str_of(demotions_at(was, i)->repo)))
            fprintf(to, "recovered  %s\n", demotions_at(was, i)->repo);
    if (demotions_equal(was, is))
        fprintf(to, "unchanged  %zu demoted\n", demotions_size(is));
}

static enum err apply(const struct ctl *ctl, const struct arguments *arguments,
                      const struct levels_report *report, struct why *why)
{
    const struct demotions *was = report->input->demotions;
    struct demotions *wanted = levels_report_demotions(report);
    FILE *to = arguments->output == AS_JSON ? stderr : stdout;
    enum err err = OK;
    fputs(arguments->output == AS_JSON ? "" : "\n", to);
    changes_tell(to, was, wanted);
    if (arguments->dry_run)
        fputs("dry run: nothing was written\n", to);
    else if (!demotions_equal(was, wanted))
        err = demotions_write(ctl, wanted, report->input->now_ms, why);
    demotions_free(wanted);
    return err;
}

static void print(const struct arguments *arguments, const struct levels_report *report)
{
    struct buf CLEANUP(buf_clear) text;
    buf_init(&text, TEXT_MAX);
    if (arguments->output == AS_TEXT)
        levels_report_text(report, &text);
    else if (arguments->output == AS_JSON)
        levels_report_json(report, &text);
    else
        buf_put(&text, buf_str(&report->patch));
    fwrite(buf_str(&text).ptr, 1, text.len, stdout);
}

static enum err show(const struct ctl *ctl, const struct arguments *arguments, struct reading *r,
                     int64_t now_ms, struct why *why)
{
    struct content_source source;
    struct levels_report report;
    struct levels_input input = {
        .rules = arguments->rules,
        .now_ms = now_ms,
        .text = str_of(r->text),
        .list = r->list,
        .sha = r->sha,
        .source = r->source ? r->source : "an unknown source",
        .path = DEFAULT_PATH,
        .fetched_ms = r->fetched_ms,
        .tenure = r->tenure,
        .jobs = r->jobs,
        .demotions = r->demotions,
        .devices = arguments->devices,
        .n_devices = arguments->n_devices,
    };
    if (r->source && content_source_parse(&source, str_of(r->source), why) == OK &&
        source.kind == CONTENT_GITHUB)
        input.path = source.path;
    enum err err = levels_report_make(&report, &input, why);
    if (err != OK)
        return err;
    print(arguments, &report);
    if (arguments->apply)
        err = apply(ctl, arguments, &report, why);
    levels_report_clear(&report);
    return err;
}

int verb_levels(struct ctl *ctl, int argc, char **argv)
{
    struct arguments arguments;
    struct reading reading;
    struct why why;
    int64_t now_ms = clock_wall_ms();
    int code = parse(ctl, &arguments, argc, argv);
    if (code != CTL_OK)
        return code;
    enum err err = read_topics(ctl, &arguments.rules, now_ms, &reading, &why);
    if (err == OK)
        err = show(ctl, &arguments, &reading, now_ms, &why);
    if (reading.unreadable)
        fprintf(stderr, "crcrctl levels: %zu records could not be read and were passed over\n",
                reading.unreadable);
    reading_clear(&reading);
    return err == OK ? CTL_OK : ctl_fail(ctl, err, &why);
}

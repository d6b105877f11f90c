#include "probe.h"

#include <stdio.h>
#include <string.h>

#include "../../common/base/clock.h"
#include "../../common/model/ids.h"
#include "../../common/model/yaml_doc.h"
#include "out.h"

#define STEPS "deploy/downstream/README.md"
#define EVENT "repository_dispatch"

#define SAY(line, state_, ...) ((line)->state = (state_), FORMAT((line)->text, __VA_ARGS__))
#define DO(line, ...)          FORMAT((line)->todo, __VA_ARGS__)

/* ---- a workflow file ------------------------------------------------------------------------- */

/* The value of a mapping's key, or NULL. */
static const struct yaml_doc_node *value_of(const struct yaml_doc_node *map, const char *key)
{
    if (!map || map->kind != YAML_DOC_MAP)
        return NULL;
    for (const struct yaml_doc_node *at = map->first; at; at = at->next->next)
        if (str_is(at->text, key))
            return at->next;
    return NULL;
}

/* A text of that name, or a list that has one. */
static bool names(const struct yaml_doc_node *node, const char *name)
{
    if (node->kind == YAML_DOC_TEXT)
        return str_is(node->text, name);
    for (const struct yaml_doc_node *at = node->first; at && node->kind == YAML_DOC_LIST;
         at = at->next)
        if (at->kind == YAML_DOC_TEXT && str_is(at->text, name))
            return true;
    return false;
}

/* on: repository_dispatch; on: [push, repository_dispatch]; on: {repository_dispatch: {types: …}}
 */
enum err workflow_file_read(struct str yaml, const char *name, struct workflow_events *ret,
                            struct why *why)
{
    struct yaml_doc *doc;
    enum err err = yaml_doc_parse(&doc, name, yaml, why);
    if (err)
        return err;
    const struct yaml_doc_node *on = value_of(yaml_doc_root(doc), "on");
    const struct yaml_doc_node *dispatch = value_of(on, EVENT),
                               *types = value_of(dispatch, "types");
    ret->listens = dispatch || (on && names(on, EVENT));
    ret->pull_request = ret->listens && (!types || names(types, "pull_request"));
    ret->push = ret->listens && (!types || names(types, "push"));
    yaml_doc_free(doc);
    return OK;
}

/* ---- the checks, in the order in which a vendor comes to them -------------------------------- */

static const struct allowlist_entry *entry_of(const struct probe_facts *f)
{
    return allowlist_find(f->list, f->repo);
}

static int level_of(const struct probe_facts *f)
{
    const struct allowlist_entry *entry = entry_of(f);
    return entry ? entry->level : 0;
}

/* "2026-11-21 03:20": to the minute. */
static const char *minute(int64_t ms, char to[CLOCK_TEXT_SIZE])
{
    clock_format(ms, to);
    to[10] = ' ';
    to[16] = '\0';
    return to;
}

/* What GitHub did not answer is unknown, not missing. True when there is an answer. */
static bool was_answered(struct probe_line *line, enum probe_asked asked, const char *text)
{
    if (asked == PROBE_ANSWERED || asked == PROBE_REFUSED)
        return true;
    SAY(line, PROBE_UNKNOWN, "%s", text);
    return false;
}

static void check_app(const struct probe_facts *f, struct probe_line *line)
{
    if (!was_answered(line, f->app, f->app_text))
        return;
    if (f->app == PROBE_ANSWERED) {
        SAY(line, PROBE_OK, "the App is installed: %s", f->app_text);
        return;
    }
    SAY(line, PROBE_TODO, "the App is not installed on this repository: %s", f->app_text);
    DO(line, "install the App and choose this repository (step 1 of " STEPS ")");
}

static void check_allowlist(const struct probe_facts *f, struct probe_line *line)
{
    const struct allowlist_entry *entry = entry_of(f);
    char since[CLOCK_TEXT_SIZE];
    if (!f->list) {
        SAY(line, PROBE_TODO, "the relay has no allowlist yet");
        DO(line, "its operators: does crcr-dispatcher run, and can it read ALLOWLIST_URL?");
        return;
    }
    if (!entry) {
        SAY(line, PROBE_TODO, "not on the allowlist %s", f->source);
        DO(line,
           "open a pull request that adds `- %.*s` below L1 there (step 5 of " STEPS "); the "
           "relay reads it at once when it is merged",
           STR_ARG(f->repo));
        return;
    }
    SAY(line, f->demotion ? PROBE_TODO : PROBE_OK, "%s since %s, line %d%s%.*s; events:%s%s%s",
        level_name(entry->level),
        f->level_since_ms < 0 ? "an unknown time" : minute(f->level_since_ms, since), entry->line,
        entry->device.len ? ", device " : "", STR_ARG(entry->device),
        entry->pull_request ? " pull_request and push" : "", entry->nightly ? " nightly" : "",
        f->demotion ? "; demoted, so no new check runs: " : "");
    if (!f->demotion)
        return;
    size_t used = strlen(line->text);
    snprintf(line->text + used, sizeof(line->text) - used, "%s", f->demotion->reason);
    DO(line, "let the figures recover: `crcrctl levels` shows them. A pull request that demotes is "
             "then to be closed");
}

static void check_workflow(const struct probe_facts *f, struct probe_line *line)
{
    if (!was_answered(line, f->workflows, f->workflows_text))
        return;
    if (f->workflows == PROBE_REFUSED || f->n_workflows == 0) {
        SAY(line, PROBE_TODO, "no workflow on the default branch%s%s",
            f->workflows == PROBE_REFUSED ? ": " : "", f->workflows_text);
        DO(line, "add deploy/downstream/workflow.yml as .github/workflows/pytorch.yml to the "
                 "default branch (step 2 of " STEPS ")");
        return;
    }
    if (!*f->listening) {
        SAY(line, *f->unreadable ? PROBE_UNKNOWN : PROBE_TODO,
            "none of %zu workflows on the default branch listens to repository_dispatch%s%s",
            f->n_workflows, *f->unreadable ? "; one could not be read: " : "", f->unreadable);
        DO(line, "add `on: repository_dispatch: types: [pull_request, push]`");
        return;
    }
    if (!f->events.pull_request) {
        SAY(line, PROBE_TODO, "%s listens to repository_dispatch, but not to type pull_request",
            f->listening);
        DO(line, "`types: [pull_request, push]` below repository_dispatch");
        return;
    }
    SAY(line, PROBE_OK, "%s listens to repository_dispatch%s", f->listening,
        f->events.push ? "" : "; pushes start nothing, type push is not named");
}

/* What a last outcome means: GitHub has the dispatch (a duplicate's first call), or said no; of all
 * others (waiting, unknown, what cannot be read) nobody knows yet. */
static enum probe_state state_of(const char *outcome)
{
    if (!strcmp(outcome, "dispatched") || !strcmp(outcome, "duplicate"))
        return PROBE_OK;
    return !strcmp(outcome, "failed") ? PROBE_TODO : PROBE_UNDECIDED;
}

static void check_dispatch(const struct probe_facts *f, struct probe_line *line)
{
    const struct allowlist_entry *entry = entry_of(f);
    char at[CLOCK_TEXT_SIZE];
    enum probe_state state = state_of(f->dispatch.outcome);
    if (!f->dispatch.at_ms && !entry) {
        SAY(line, PROBE_NOT_EXPECTED, "only what is on the allowlist is dispatched to");
    } else if (!f->dispatch.at_ms && !entry->pull_request) {
        SAY(line, PROBE_NOT_EXPECTED, "events: nightly alone; nothing is dispatched");
    } else if (!f->dispatch.at_ms) {
        SAY(line, PROBE_TODO, "none since %s", minute(f->since_ms, at));
        DO(line, "the next pull request or push to the upstream makes one; if there were some, "
                 "its operators: `crcrctl lag crcr-router`");
    } else if (state != PROBE_OK) {
        SAY(line, state, "%s %s: %s", *f->dispatch.outcome ? f->dispatch.outcome : "unreadable",
            minute(f->dispatch.at_ms, at), f->dispatch.detail);
        DO(line, "`crcrctl trace %s` shows more", f->dispatch.delivery);
    } else {
        SAY(line, state, "%s %s, delivery %s", f->dispatch.outcome, minute(f->dispatch.at_ms, at),
            f->dispatch.delivery);
    }
}

static void check_callback(const struct probe_facts *f, struct probe_line *line)
{
    char at[CLOCK_TEXT_SIZE];
    if (f->callback.at_ms && !*f->callback.outcome) {
        SAY(line, PROBE_TODO, "%s: %s", minute(f->callback.at_ms, at), f->callback.detail);
        DO(line, "`crcrctl dlq list --repo %.*s` has it", STR_ARG(f->repo));
        return;
    }
    if (f->callback.at_ms) {
        SAY(line, PROBE_OK, "%s %s, delivery %s", f->callback.outcome,
            minute(f->callback.at_ms, at), f->callback.delivery);
        return;
    }
    if (level_of(f) < 2) {
        SAY(line, PROBE_NOT_EXPECTED, "what is reported below L2 is not recorded");
        if (level_of(f) == 1)
            DO(line, "when the runs are green: ask for L2 (step 6 of " STEPS ")");
        return;
    }
    SAY(line, PROBE_TODO, "none since %s", minute(f->since_ms, at));
    DO(line,
       "look at the step \"Report that it has begun\" of a run: is the variable "
       "CRCR_CALLBACK_URL set, has the job `id-token: write`? (\"The report says\" in " STEPS ")");
}

static void check_check_run(const struct probe_facts *f, struct probe_line *line)
{
    const struct allowlist_entry *entry = entry_of(f);
    if (level_of(f) < 3) {
        SAY(line, PROBE_NOT_EXPECTED, "check runs begin at L3");
        return;
    }
    if (!was_answered(line, f->check, f->check_text))
        return;
    if (*f->check_text) {
        SAY(line, PROBE_OK, "%s", f->check_text);
        return;
    }
    SAY(line, PROBE_TODO, "none among the newest jobs");
    if (entry->level == 3)
        DO(line, "it needs the label ciflow/crcr/%.*s on the pull request", STR_ARG(entry->device));
    else
        DO(line, "its operators: `crcrctl lag crcr-reconcile`, `crcrctl dlq list`");
}

void probe_check(const struct probe_facts *facts, struct probe_line to[PROBE_LINES])
{
    static const struct {
        const char *name;
        void (*check)(const struct probe_facts *, struct probe_line *);
    } checks[PROBE_LINES] = {
        { "app", check_app },
        { "workflow", check_workflow },
        { "allowlist", check_allowlist },
        { "last dispatch", check_dispatch },
        { "last callback", check_callback },
        { "last check run", check_check_run },
    };
    for (size_t i = 0; i < PROBE_LINES; i++) {
        to[i] = (struct probe_line){ .name = checks[i].name };
        checks[i].check(facts, &to[i]);
    }
}

bool probe_has_todo(const struct probe_line lines[PROBE_LINES])
{
    for (size_t i = 0; i < PROBE_LINES; i++)
        if (lines[i].state == PROBE_TODO)
            return true;
    return false;
}

/* ---- text and JSON --------------------------------------------------------------------------- */

void probe_text(const struct probe_facts *facts, const struct probe_line lines[PROBE_LINES],
                struct buf *to)
{
    static const char *const marks[] = { "ok", "MISSING", "?", "-", "?" };
    size_t unknown = 0;
    bool undecided = false;
    buf_printf(to, "%.*s\n", STR_ARG(facts->repo));
    for (size_t i = 0; i < PROBE_LINES; i++) {
        clean_printf(to, "  %-8s %-15s %s\n", marks[lines[i].state], lines[i].name, lines[i].text);
        if (*lines[i].todo)
            buf_printf(to, "%27s-> %s\n", "", lines[i].todo);
        unknown += lines[i].state == PROBE_UNKNOWN;
        undecided |= lines[i].state == PROBE_UNDECIDED;
    }
    if (probe_has_todo(lines))
        buf_puts(to, "Something is to be done.\n");
    else if (undecided)
        buf_puts(to,
                 "Nothing is known to be missing; the last dispatch has no known outcome yet.\n");
    else if (unknown)
        buf_printf(to, "Nothing is known to be missing; %zu could not be looked at.\n", unknown);
    else
        buf_puts(to, "All is as it should be.\n");
}

void probe_json(const struct probe_facts *facts, const struct probe_line lines[PROBE_LINES],
                struct buf *to)
{
    static const char *const names[] = { "ok", "missing", "not_checked", "not_expected",
                                         "undecided" };
    put_json(to, "{repo:%.*s something_to_do:%i checks:[", STR_ARG(facts->repo),
             probe_has_todo(lines));
    for (size_t i = 0; i < PROBE_LINES; i++)
        put_json(to, "{name:%s state:%s text:%s todo:%s}", lines[i].name, names[lines[i].state],
                 lines[i].text, lines[i].todo);
    buf_puts(to, "]}\n");
}

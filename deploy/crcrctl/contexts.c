#include "contexts.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/mem.h"
#include "../../common/model/yaml_doc.h"
#include "out.h"
#include "verbs.h"

#define FILE_MAX 65536
#define NAME_MAX 100

extern char **environ;

/* ---- the files ------------------------------------------------------------------------------- */

struct contexts {
    char path[1024], current_path[1024];
    struct yaml_doc *doc;           /* NULL: no file */
    const struct yaml_doc_node *at; /* the first name; NULL: there is none */
    char current[NAME_MAX + 1];     /* "": none */
};

static void contexts_clear(struct contexts *c)
{
    yaml_doc_free(c->doc);
}

static enum err contexts_read(struct contexts *c, struct why *why)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(FILE_MAX);
    struct buf CLEANUP(buf_clear) current = BUF_INIT(NAME_MAX + 1);
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool own = config && *config;
    *c = (struct contexts){ .doc = NULL };
    FORMAT(c->current_path, "%s%s/crcr/context",
           own    ? config
           : home ? home
                  : "",
           own ? "" : "/.config");
    FORMAT(c->path, "%.1000ss.yml", c->current_path);
    if (!access(c->current_path, F_OK) && ctl_read_file(&current, c->current_path, why))
        return ERR_REFUSE;
    COPY(c->current, str_trim(buf_str(&current)));
    if (access(c->path, F_OK) && errno == ENOENT)
        return OK;
    if (ctl_read_file(&text, c->path, why) || yaml_doc_parse(&c->doc, c->path, buf_str(&text), why))
        return ERR_REFUSE;
    const struct yaml_doc_node *root = yaml_doc_root(c->doc);
    if (root && root->kind != YAML_DOC_MAP)
        return yaml_doc_fault(c->doc, root, why, "accepted is a mapping of names to settings");
    c->at = root ? root->first : NULL;
    for (const struct yaml_doc_node *name = c->at; name; name = name->next->next)
        if (name->next->kind != YAML_DOC_MAP || name->text.len > NAME_MAX)
            return yaml_doc_fault(c->doc, name, why,
                                  "accepted is a name of at most %d bytes, and "
                                  "a mapping of its settings",
                                  NAME_MAX);
    return OK;
}

static const struct yaml_doc_node *value_of(const struct yaml_doc_node *at, const char *key)
{
    while (at && !str_is(at->text, key))
        at = at->next->next;
    return at ? at->next : NULL;
}

void contexts_names(struct buf *to)
{
    struct contexts CLEANUP(contexts_clear) c;
    struct why why;
    if (contexts_read(&c, &why))
        return;
    for (const struct yaml_doc_node *at = c.at; at; at = at->next->next)
        buf_printf(to, "%.*s\n", STR_ARG(at->text));
}

static const struct yaml_doc_node *context_find(const struct contexts *c, const char *name,
                                                struct why *why)
{
    struct buf CLEANUP(buf_clear) names = BUF_INIT(FILE_MAX);
    struct buf CLEANUP(buf_clear) meant = BUF_INIT(FILE_MAX);
    const struct yaml_doc_node *found = value_of(c->at, name);
    contexts_names(&names);
    suggest(&meant, name, buf_str(&names));
    if (!found)
        why_set(why, ERR_REFUSE, "no context '%s' in %s%.*s", name, c->path,
                STR_ARG(buf_str(&meant)));
    return found;
}

/* ---- what a verb goes by --------------------------------------------------------------------- */

/* Whether "NAME=value" is of that setting, or of NAME_FILE. */
static bool is_of(const char *variable, const char *name)
{
    struct str text = str_of(variable), left = STR_NONE;
    return str_split(&text, '=', &left) && text.len && str_starts(left, name) &&
           (left.len == strlen(name) || str_is(str_from(left, strlen(name)), "_FILE"));
}

static char *variable(struct str name, struct str value)
{
    struct buf text = BUF_INIT(2 * FILE_MAX);
    buf_printf(&text, "%.*s=%.*s", STR_ARG(name), STR_ARG(value));
    return buf_take(&text, NULL);
}

static enum err context_put(const struct contexts *c, const struct yaml_doc_node *context,
                            char **to, struct why *why)
{
    for (const struct yaml_doc_node *at = context->first; at; at = at->next->next) {
        struct str name = str_is(at->text, "brokers")  ? STR_LIT("KAFKA_BROKERS")
                          : str_is(at->text, "redis")  ? STR_LIT("REDIS_ENDPOINT")
                          : str_is(at->text, "prefix") ? STR_LIT("CRCR_TOPIC_PREFIX")
                                                       : at->text;
        if (at->next->kind != YAML_DOC_TEXT || !config_is_setting(name))
            return yaml_doc_fault(c->doc, at, why,
                                  "accepted are brokers, redis, prefix, and names of `crcrctl "
                                  "config --json`, each with a text");
        *to++ = variable(name, at->next->text);
    }
    return OK;
}

enum err contexts_environment(const struct args *args, char ***ret, struct buf *from,
                              struct why *why)
{
    struct contexts CLEANUP(contexts_clear) c = { .doc = NULL };
    const struct yaml_doc_node *context = NULL;
    const char *name = args->context;
    const char *const given[][2] = { { "KAFKA_BROKERS", args->brokers },
                                     { "REDIS_ENDPOINT", args->redis } };
    bool said = false;
    size_t n = 0;
    enum err err = OK;
    for (; environ[n]; n++)
        said |= is_of(environ[n], given[0][0]) || is_of(environ[n], given[1][0]);
    if (name || !said) {
        err = contexts_read(&c, why);
        name = name ? name : *c.current ? c.current : NULL;
    }
    if (!err && name && !(context = context_find(&c, name, why)))
        err = ERR_REFUSE;
    if (err)
        return err;
    char **to = mem_alloc((context ? context->n : n) + 3, sizeof(*to));
    for (n = 0; !context && environ[n]; n++)
        to[n] = mem_dup(environ[n]);
    if (context)
        err = context_put(&c, context, to, why);
    for (n = 0; to[n];)
        n++;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; given[k][1] && i < n; i++)
            if (is_of(to[i], given[k][0]))
                *strchr(to[i], '=') = '\0'; /* no variable any more */
        if (given[k][1])
            to[n++] = variable(str_of(given[k][0]), str_of(given[k][1]));
    }
    if (context)
        buf_printf(from, "context %s of %s", name, c.path);
    else
        buf_puts(from, "the environment");
    if (err)
        contexts_environment_free(to);
    else
        *ret = to;
    return err;
}

void contexts_environment_free(char **environment)
{
    for (size_t i = 0; environment[i]; i++)
        mem_free_secret(environment[i]);
    free(environment);
}

/* ---- the verbs ------------------------------------------------------------------------------- */

int verb_context_list(struct ctl *ctl, const struct args *args)
{
    struct contexts CLEANUP(contexts_clear) c;
    struct why why;
    if (contexts_read(&c, &why))
        return ctl_fail(ctl, ERR_REFUSE, &why);
    for (const struct yaml_doc_node *at = c.at; at; at = at->next->next) {
        struct buf CLEANUP(buf_clear) line = BUF_INIT(FILE_MAX);
        const struct yaml_doc_node *brokers = value_of(at->next->first, "brokers");
        bool current = str_is(at->text, c.current);
        if (args->json) {
            json_put_begin(&line, NULL, '{');
            json_put_text(&line, "name", at->text);
            json_put_text(&line, "brokers", brokers ? brokers->text : STR_NONE);
            json_put_bool(&line, "current", current);
            buf_puts(&line, "}\n");
        } else {
            clean_printf(&line, "%s %-20.*s  %.*s\n", current ? "*" : " ", STR_ARG(at->text),
                         STR_ARG(brokers ? brokers->text : STR_LIT("-")));
        }
        ctl_put(&line);
    }
    if (!c.at)
        ctl_say(ctl, "%s has none, or is not there", c.path);
    return c.at ? CTL_OK : CTL_PROBLEM;
}

int verb_context_use(struct ctl *ctl, const struct args *args)
{
    struct contexts CLEANUP(contexts_clear) c;
    struct why why;
    if (contexts_read(&c, &why) || !context_find(&c, args->names[0], &why))
        return ctl_fail(ctl, ERR_REFUSE, &why);
    FILE *file = fopen(c.current_path, "w");
    bool done = file && fprintf(file, "%s\n", args->names[0]) > 0;
    if (!file || fclose(file) || !done) {
        ctl_say(ctl, "%s: %s", c.current_path, strerror(errno));
        return CTL_PROBLEM;
    }
    if (args->json)
        ctl_json(json_pack("{s:s}", "current", args->names[0]));
    else
        printf("current: %s\n", args->names[0]);
    return CTL_OK;
}

int verb_context_show(struct ctl *ctl, const struct args *args)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(FILE_MAX);
    struct str rest, line, name;
    config_print(ctl->config, &text);
    if (!args->json) {
        printf("# from %s\n", ctl->from);
        ctl_put(&text);
        return CTL_OK;
    }
    json_t *settings = json_object();
    for (rest = buf_str(&text); str_split(&rest, '\n', &line);)
        if (str_split(&line, '=', &name) && line.len)
            json_object_setn_new(settings, name.ptr, name.len, json_stringn(line.ptr, line.len));
    ctl_json(json_pack("{s:s, s:o}", "from", ctl->from, "settings", settings));
    return CTL_OK;
}

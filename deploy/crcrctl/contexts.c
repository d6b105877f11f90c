/* Installations that have a name: a file of settings each, as deploy/systemd/crcr.env. */
#include <glob.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../common/base/mem.h"
#include "out.h"
#include "verbs.h"

#define FILE_MAX 65536

extern char **environ;

/* The file of that context; of "*" the pattern of all. */
static void path_of(char to[CONTEXT_PATH], const char *name)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && *config)
        snprintf(to, CONTEXT_PATH, "%s/crcr/%s.env", config, name);
    else
        snprintf(to, CONTEXT_PATH, "%s/.config/crcr/%s.env", home ? home : "", name);
}

bool context_exists(const char *name)
{
    char path[CONTEXT_PATH];
    path_of(path, name);
    return *name && !strchr(name, '/') && !access(path, F_OK);
}

void contexts_names(struct buf *to)
{
    char pattern[CONTEXT_PATH];
    glob_t files = { .gl_pathc = 0 };
    path_of(pattern, "*");
    (void)glob(pattern, 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *name = strrchr(files.gl_pathv[i], '/') + 1;
        buf_printf(to, "%.*s\n", (int)(strlen(name) - strlen(".env")), name);
    }
    globfree(&files);
}

/* In place of all that the environment has of ours, also names that are none. */
static enum err take_file(const char *path, struct why *why)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(FILE_MAX);
    char **kept = environ;
    struct str line, name;
    if (ctl_read_file(&text, path, why))
        return ERR_REFUSE;
    for (char **at = environ; *at; at++) {
        struct str value = str_of(*at);
        if (str_split(&value, '=', &name) && !str_starts(name, "CRCR_") && !config_is_setting(name))
            *kept++ = *at;
    }
    *kept = NULL;
    struct str rest = buf_str(&text);
    for (size_t number = 1; str_split(&rest, '\n', &line); number++) {
        char *CLEANUP(mem_free_secret_char) variable = str_dup(str_trim(line));
        size_t len = strcspn(variable, "=");
        if (!*variable || *variable == '#')
            continue;
        if (!variable[len] || variable[len + 1] == '"' || variable[len + 1] == '\'' ||
            !config_is_setting((struct str){ variable, len }))
            return why_set(why, ERR_REFUSE,
                           "%s:%zu: accepted are NAME=value, without quotes, with a name of "
                           "`crcrctl config --markdown`, and comments that begin with #",
                           path, number);
        variable[len] = '\0';
        setenv(variable, variable + len + 1, 1);
    }
    return OK;
}

enum err context_apply(const struct args *args, char from[CONTEXT_PATH], struct why *why)
{
    static const char *const names[][2] = { { "KAFKA_BROKERS", "KAFKA_BROKERS_FILE" },
                                            { "REDIS_ENDPOINT", "REDIS_ENDPOINT_FILE" } };
    const char *given[] = { args->brokers, args->redis };
    const char *context = args->context ? args->context : "default", *value;
    bool chosen = args->context || context_exists(context);
    for (size_t i = 0; i < 4 && !args->context; i++)
        chosen &= !given[i / 2] && (!(value = getenv(names[i / 2][i % 2])) || !*value);
    path_of(from, context);
    enum err err = chosen ? take_file(from, why) : OK;
    if (!chosen)
        snprintf(from, CONTEXT_PATH, "the environment");
    for (size_t i = 0; i < 2; i++)
        if (given[i]) {
            setenv(names[i][0], given[i], 1);
            unsetenv(names[i][1]);
        }
    return err;
}

int verb_context(struct ctl *ctl, const struct args *args)
{
    struct buf CLEANUP(buf_clear) names = BUF_INIT(FILE_MAX), text = BUF_INIT(FILE_MAX);
    struct str rest, line, name;
    contexts_names(&names);
    config_print(ctl->config, &text);
    if (!args->json) {
        printf("%.*s# from %s\n%s", STR_ARG(buf_str(&names)), ctl->from, text.ptr);
        return CTL_OK;
    }
    json_t *all = json_pack("{s:s, s:[], s:{}}", "from", ctl->from, "contexts", "settings");
    for (rest = buf_str(&names); str_split(&rest, '\n', &name);)
        json_array_append_new(json_object_get(all, "contexts"), json_stringn(name.ptr, name.len));
    for (rest = buf_str(&text); str_split(&rest, '\n', &line);)
        if (str_split(&line, '=', &name) && line.len)
            json_object_setn_new(json_object_get(all, "settings"), name.ptr, name.len,
                                 json_stringn(line.ptr, line.len));
    json_dumpf(all, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(all);
    return CTL_OK;
}

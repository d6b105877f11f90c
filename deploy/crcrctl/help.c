#include <string.h>

#include "../../common/daemon/daemon.h"
#include "out.h"
#include "verbs.h"

/* completion.bash and so on */
extern const char embedded_completion_bash[], embedded_completion_zsh[], embedded_completion_fish[];

#define HELP_MAX (1u << 20)
#define WIDTH    100
#define COLUMN   30 /* where the text of an option begins */
#define ENVIRONMENT                                                                                \
    "KAFKA_BROKERS, --brokers or a context says where Kafka is; CRCR_TOPIC_PREFIX how topics "     \
    "begin."
#define EXIT_CODES                                                                                 \
    "Exit codes: 0 done, 1 a problem or nothing found, 2 usage or configuration, 3 not reachable."

static size_t width(void)
{
    size_t columns = out_width();
    return columns >= COLUMN + 10 && columns < WIDTH ? columns : WIDTH;
}

/* Its text, its default. */
static void option_text(struct buf *to, const struct option_row *row)
{
    buf_puts(to, row->help);
    if (row->initial)
        buf_printf(to, "; default %s", row->initial);
}

static void put_verb(struct buf *to, const struct verb *verb)
{
    buf_printf(to, "\n%s: %s\n", verb->name, verb->summary);
    if (verb->text)
        put_wrapped(to, str_of(verb->text), 0, 0, width());
    const struct option_row *row;
    for (size_t i = 0; (row = verb_option(verb, i)); i++) {
        struct buf CLEANUP(buf_clear) text = BUF_INIT(4000);
        char name[100], letter[8] = "";
        option_text(&text, row);
        if (row->letter)
            FORMAT(letter, "-%c, ", row->letter);
        FORMAT(name, "  %s--%s %s", letter, row->name, option_value(row));
        if (strlen(name) < COLUMN)
            buf_printf(to, "%-*s", COLUMN, name);
        else
            buf_printf(to, "%s\n%*s", name, COLUMN, "");
        put_wrapped(to, buf_str(&text), COLUMN, COLUMN, width());
    }
    const char *codes = verb->codes ? verb->codes : "0";
    buf_printf(to, "Exit codes: %s%s, 2 usage or configuration.\n", *codes == '0' ? "" : "0, ",
               codes);
}

/* "dlq" is the first word of "dlq list". */
static bool is_named(const struct verb *verb, const char *name)
{
    size_t len = strlen(name);
    return !strncmp(verb->name, name, len) && (!verb->name[len] || verb->name[len] == ' ');
}

static void put_usage(struct buf *to, const struct verb *verb)
{
    buf_printf(to, "crcrctl %s%s%s%s\n", verb->name, verb_option(verb, 0) ? " [OPTION…]" : "",
               *verb->arguments ? " " : "", verb->arguments);
}

/* There is no such verb; names those that may be meant. */
static int no_verb(int argc, char **argv)
{
    struct buf CLEANUP(buf_clear) names = BUF_INIT(HELP_MAX), meant = BUF_INIT(HELP_MAX);
    char two[200];
    bool more = argc > 1 && *argv[1] && *argv[1] != '-';
    FORMAT(two, "%s%s%s", argv[0], more ? " " : "", more ? argv[1] : "");
    names_of_verbs(&names);
    suggest(&meant, two, buf_str(&names));
    if (!meant.len) /* the second word may be something else */
        suggest(&meant, argv[0], buf_str(&names));
    if (*argv[0] == '-')
        fprintf(stderr, "crcrctl: options come after the verb, '%s', too\n", argv[0]);
    else
        fprintf(stderr, "crcrctl: no verb '%s'%.*s `crcrctl help` lists all\n", two,
                STR_ARG(meant.len ? buf_str(&meant) : STR_LIT(";")));
    return CTL_USAGE;
}

bool help_verb(struct buf *to, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < n_verbs; i++)
        if (is_named(&verbs[i], name)) {
            buf_puts(to, n++ ? "       " : "usage: ");
            put_usage(to, &verbs[i]);
        }
    for (size_t i = 0; i < n_verbs; i++)
        if (is_named(&verbs[i], name))
            put_verb(to, &verbs[i]);
    return n > 0;
}

void help_all(struct buf *to)
{
    buf_puts(to, "usage: crcrctl VERB …; `crcrctl help VERB` says more\n\n");
    for (size_t i = 0; i < n_verbs; i++)
        buf_printf(to, "  %-18s %s\n", verbs[i].name, verbs[i].summary);
    buf_puts(to, "\n" ENVIRONMENT "\n" EXIT_CODES "\n");
}

int help_print(bool asked, int argc, char **argv)
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(HELP_MAX);
    int words;
    const struct verb *verb = argc ? args_verb(argc, argv, &words) : NULL;
    if (!argc || !*argv[0] || (asked && *argv[0] == '-'))
        help_all(&text);
    else if ((argc > 1 && !asked) || !help_verb(&text, verb ? verb->name : argv[0]))
        return no_verb(argc, argv);
    if (asked)
        ctl_put_text(&text);
    else
        fputs(text.ptr, stderr);
    return asked ? CTL_OK : CTL_USAGE;
}

/* ---- the manual page ------------------------------------------------------------------------ */

/* man(7): a backslash is written \e, and a line must not begin with a dot or an apostrophe. */
static void put_roff(struct buf *to, const char *text)
{
    buf_puts(to, *text == '.' || *text == '\'' ? "\\&" : "");
    for (; *text; text++) {
        if (*text == '\n')
            buf_puts(to, "\n.br");
        buf_puts(to, *text == '\\' ? "\\e" : *text == '-' ? "\\-" : (char[]){ *text, '\0' });
    }
    buf_putc(to, '\n');
}

void help_manual(struct buf *to)
{
    buf_puts(to, ".TH CRCRCTL 1\n.SH NAME\ncrcrctl \\- look into the relay, check its parts, and "
                 "bring back what was lost\n.SH SYNOPSIS\ncrcrctl VERB [OPTION…] …\n"
                 ".SH DESCRIPTION\n" ENVIRONMENT "\n.SH EXIT STATUS\n" EXIT_CODES "\n.SH VERBS\n");
    for (size_t i = 0; i < n_verbs; i++) {
        buf_puts(to, ".SS ");
        put_usage(to, &verbs[i]);
        put_roff(to, verbs[i].summary);
        if (verbs[i].text) {
            buf_puts(to, ".PP\n");
            put_roff(to, verbs[i].text);
        }
        const struct option_row *row;
        for (size_t k = 0; (row = verb_option(&verbs[i], k)); k++) {
            struct buf CLEANUP(buf_clear) text = BUF_INIT(4000);
            option_text(&text, row);
            buf_printf(to, ".TP\n\\-\\-%s %s\n", row->name, option_value(row));
            put_roff(to, text.ptr);
        }
    }
}

/* ---- the verbs that print them --------------------------------------------------------------- */

static int text_print(void (*write)(struct buf *to))
{
    struct buf CLEANUP(buf_clear) text = BUF_INIT(HELP_MAX);
    write(&text);
    ctl_put(&text);
    return CTL_OK;
}

int verb_config(struct ctl *ctl, const struct args *args)
{
    if (!args->json)
        return args->markdown ? text_print(config_markdown)
                              : ctl_bad(ctl, "form", "", "--markdown or --json");
    for (size_t i = 0; i < config_n_properties; i++)
        put_json(NULL, "{name:%s default:%s secret:%i meaning:%s}", config_properties[i].name,
                 config_properties[i].fallback, config_properties[i].secret,
                 config_properties[i].help);
    return CTL_OK;
}

int verb_manual(struct ctl *ctl, const struct args *args)
{
    (void)ctl;
    (void)args;
    return text_print(help_manual);
}

int verb_help(struct ctl *ctl, const struct args *args)
{
    (void)ctl;
    return help_print(true, (int)args->n_names, args->names);
}

int verb_version(struct ctl *ctl, const struct args *args)
{
    (void)ctl;
    if (args->json)
        put_json(NULL, "{version:%s}", daemon_version());
    else
        printf("crcrctl %s\n", daemon_version());
    return CTL_OK;
}

int verb_completion(struct ctl *ctl, const struct args *args)
{
    const char *shell = args->n_names ? args->names[0] : "bash";
    (void)ctl;
    fputs(*shell == 'b'   ? embedded_completion_bash
          : *shell == 'z' ? embedded_completion_zsh
                          : embedded_completion_fish,
          stdout);
    return CTL_OK;
}

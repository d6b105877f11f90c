#include "badge.h"

#include <stdio.h>

#include "../../common/model/ids.h"
#include "../aggregate.h"

#define GOOD "#176f2c" /* white text on each has a contrast of 4.5 at least */
#define WARN "#8a5300"
#define BAD  "#b3261e"
#define GREY "#59636e"

#define LABEL_WIDTH 34
#define CHAR_WIDTH  7 /* of 11 px: textLength makes the text as wide as that */

/* text is ours and needs no escape: a level, digits, a conclusion of our own table. */
static void image_put(struct buf *to, const char *text, const char *colour)
{
    int width = (int)str_of(text).len * CHAR_WIDTH + 10, all = LABEL_WIDTH + width;
    buf_printf(to,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"20\" role=\"img\" "
               "aria-label=\"crcr: %s\"><title>crcr: %s</title>"
               "<rect width=\"%d\" height=\"20\" rx=\"3\" fill=\"#2b3137\"/>"
               "<rect x=\"%d\" width=\"%d\" height=\"20\" rx=\"3\" fill=\"%s\"/>",
               all, text, text, all, LABEL_WIDTH, width, colour);
    buf_printf(to,
               "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">"
               "<text x=\"5\" y=\"14\">crcr</text>"
               "<text x=\"%d\" y=\"14\" textLength=\"%d\">%s</text></g></svg>\n",
               LABEL_WIDTH + 5, width - 10, text);
}

void badge_put_unknown(struct buf *to)
{
    image_put(to, "unknown", GREY);
}

/* The job that is worst off in the newest nightly or periodic run; NULL: there is none. */
static const struct result_record *nightly_worst(const struct result_record *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (result_record_is_self(&jobs[i]) && !jobs[i].replaced)
            return score_of_newest_run(&jobs[i], n - i).worst;
    return NULL;
}

void badge_put(struct buf *to, int level, int64_t completed, int64_t successful,
               const struct result_record *jobs, size_t n)
{
    const struct result_record *nightly = nightly_worst(jobs, n);
    const char *name = level ? level_name(level) : "not listed", *colour = GREY;
    char text[64];
    if (completed > 0) {
        double percent = 100.0 * (double)successful / (double)completed;
        colour = percent >= 95 ? GOOD : percent >= 80 ? WARN : BAD;
        snprintf(text, sizeof(text), "%s, %.1f %% pass", name,
                 percent > 99.9 && percent < 100 ? 99.9 : percent);
    } else if (nightly) {
        const char *conclusion = job_conclusion(nightly);
        bool good = result_record_is_successful(nightly);
        bool bad = !good && conclusion && conclusion_is_bad(conclusion);
        colour = good ? GOOD : bad ? BAD : GREY;
        snprintf(text, sizeof(text), "%s, nightly %s", name,
                 good  ? "passes"
                 : bad ? "fails"
                       : "runs");
    } else {
        snprintf(text, sizeof(text), "%s, no results", name);
    }
    image_put(to, text, colour);
}

/* How a fuzz target takes its input apart. All is borrowed from the input. */
#ifndef CRCR_FUZZ_INPUT_H
#define CRCR_FUZZ_INPUT_H

#include <stdlib.h>

#include "common/base/headers.h"

/* A promise that does not hold ends the run: the fuzzer keeps the input. */
static inline void must(bool holds)
{
    if (!holds)
        abort();
}

/* The next line, without its end; absent when nothing is left. */
static inline struct str input_line(struct str *text)
{
    struct str line;
    return str_split(text, '\n', &line) ? line : STR_NONE;
}

/* Lines "name: value", up to an empty line or the end. A line without a colon is passed over. */
static inline void input_headers(struct str *text, struct headers *to)
{
    headers_init(to);
    for (struct str line = input_line(text); line.len; line = input_line(text)) {
        ptrdiff_t colon = str_find(line, ':');
        if (colon >= 0)
            (void)headers_put_str(to, (struct str){ line.ptr, (size_t)colon },
                                  str_trim(str_from(line, (size_t)colon + 1)));
    }
}

/* What is left; empty, never absent. */
static inline struct str input_rest(struct str text)
{
    return text.ptr ? text : STR_LIT("");
}

#endif

/* How far something long is, on stderr: in place on a terminal, else a line every few seconds. */
#ifndef CRCR_CTL_PROGRESS_H
#define CRCR_CTL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../common/base/err.h"

struct progress {
    const char *verb;
    int64_t due_ms; /* monotonic */
};

void progress_init(struct progress *p, const char *verb);
/* Cheap to call often. */
void progress_show(struct progress *p, const char *format, ...) PRINTF_LIKE(2, 3);
/* Takes what stands there off the terminal, whoever showed it: before any other line is printed. */
void progress_end(void);

/* At most so many a second, one after the other. */
struct pace {
    int64_t step_us; /* 0: no limit */
    int64_t due_us;  /* monotonic */
};
void pace_init(struct pace *p, int per_second);
/* Waits for the next one's turn; false when the program is to stop. */
bool pace_wait(struct pace *p);
/* Waits; false when the program is to stop. */
bool ctl_wait(int64_t ms);

#endif

/* Error kinds: what the caller should do next, not only what happened.
 *
 * One convention everywhere: a fallible function returns enum err, fills *why with a sentence for
 * people, and leaves its results untouched unless it returns OK. Library code never logs; the loop
 * that decides what to do logs once. */
#ifndef CRCR_BASE_ERR_H
#define CRCR_BASE_ERR_H

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
/* Runs fn(&variable) when the variable goes out of scope (systemd's _cleanup_). */
#define CLEANUP(fn)       __attribute__((cleanup(fn)))

enum err {
    OK = 0,
    ERR_REFUSE,  /* the input is wrong, or the other side said never: the same again fails again */
    ERR_RETRY,   /* it did not happen; the same again later may work */
    ERR_UNKNOWN, /* it may or may not have happened: no answer was seen */
    ERR_STOP,    /* this process cannot go on: bad configuration, fatal broker error */
};

/* The text that goes with an error: one sentence, what and where and what is accepted, no newline.
 */
struct why {
    char text[512];
};

/* Formats the text (cut to fit; why may be NULL) and returns err, so that a caller can write
 * return why_set(why, ERR_REFUSE, "delivery is missing"). */
enum err why_set(struct why *why, enum err err, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "prefix: " in front of the text that is there already, and returns err. */
enum err why_prefix(struct why *why, enum err err, const char *format, ...) PRINTF_LIKE(3, 4);

/* "ok", "refuse", "retry", "unknown", "stop": for logs and metric labels. */
const char *err_name(enum err err);

#endif

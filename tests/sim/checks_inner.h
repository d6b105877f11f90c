/* What checks.c and suites.c share. */
#ifndef CRCR_SIM_CHECKS_INNER_H
#define CRCR_SIM_CHECKS_INNER_H

#include <uthash.h>

#include "checks.h"

struct check {
    UT_hash_handle hh; /* by id; in order of creation */
    int64_t id;
    char *repo;
    struct suite *suite;
    struct check *prev, *next; /* of the suite, the newest first */
    json_t *document;
};

/* One a repository and commit: all check runs are our App's. */
struct suite {
    UT_hash_handle hh; /* by key */
    char *key;         /* "<owner>/<repo>@<sha>", lower case */
    char *repo;
    char *sha;
    int64_t id;
    int64_t created_ms;
    struct check *runs;
};

struct checks {
    struct check *runs;
    struct suite *suites;
    int64_t next_id;
};

/* The suite of that commit; NULL: there is none. */
struct suite *suite_find(const struct checks *c, struct str repo, struct str sha);
/* The same, made when there is none. */
struct suite *suite_of(struct checks *c, struct str repo, struct str sha, int64_t now_ms);
struct suite *suite_by_id(const struct checks *c, struct str repo, int64_t id);
void suites_free(struct checks *c);
/* The caller's. */
json_t *suite_describe(struct sim *sim, const struct suite *suite);

#endif

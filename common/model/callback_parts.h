/* Private to callback: the two parts of a callback body that are arrays or objects of their own,
 * cut to what the relay keeps (behaviour.md, failed_tests_detail and triage_verdict). PURE. */
#ifndef CRCR_MODEL_CALLBACK_PARTS_H
#define CRCR_MODEL_CALLBACK_PARTS_H

#include "../base/buf.h"
#include "json_scan.h"

/* workflow.failed_tests_detail as it is found by a scan: members of a row first, then its end. */
enum failed_test_member {
    FAILED_TEST_NAME,
    FAILED_TEST_CLASSNAME,
    FAILED_TEST_MESSAGE,
    FAILED_TEST_STACKTRACE,
    FAILED_TEST_DURATION,
    FAILED_TEST_MEMBERS,
};
struct failed_tests {
    struct buf rows; /* JSON array without its closing bracket */
    struct buf row;  /* members of the row that is being read */
    bool named;      /* that row has a name */
    size_t n;
    int64_t left_out;
};
void failed_tests_init(struct failed_tests *t);
void failed_tests_clear(struct failed_tests *t);
const char *failed_test_member_name(enum failed_test_member member);
void failed_tests_member(struct failed_tests *t, enum failed_test_member member,
                         enum json_type type, struct str text);
void failed_tests_row_end(struct failed_tests *t);
/* The array, the caller's; NULL when there is no row. */
char *failed_tests_take(struct failed_tests *t);

/* The verdict normalised (unknown keys dropped) and cut, the caller's; NULL when it is structurally
 * wrong: a verdict is advice and never a reason to refuse a callback. */
char *triage_verdict_read(struct str json);

#endif

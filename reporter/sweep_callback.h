/* The callback that the relay publishes in the name of a job that ended without one: its time is
 * over (sweep.c), or its run is (reconcile_view.c). It has the job's own key, so that the fold, and
 * nobody else, writes the job. The same job and time give the same record to the byte: published
 * twice it is one fact. PURE. */
#ifndef CRCR_REPORTER_SWEEP_CALLBACK_H
#define CRCR_REPORTER_SWEEP_CALLBACK_H

#include "../common/base/headers.h"
#include "../common/model/result_record.h"

/* Enough for every name at its longest, each byte escaped. */
#define SWEEP_BODY_MAX (64u << 10)

/* False when something is missing that names the job; no callback can be made of it then. */
bool sweep_callback_possible(const struct result_record *job);
/* Appends the record's key, `<delivery>/<downstream>`. */
void sweep_callback_key(const struct result_record *job, struct buf *to);
/* As ingest writes them. ended_ms becomes received_ms: the deadline, or when GitHub said that the
 * run had ended. Strings stay borrowed from job. */
void sweep_callback_headers(const struct result_record *job, int64_t ended_ms, struct headers *to);
/* Appends a body that callback_parse accepts. It says completed for readers of the topic that know
 * no other states; the fold goes by the provenance. */
void sweep_callback_body(const struct result_record *job, const char *conclusion, struct buf *to);

#endif

/* The metric families of ingest; the index is the family. */
#ifndef CRCR_INGEST_METRICS_H
#define CRCR_INGEST_METRICS_H

#include "../common/base/metrics.h"

enum ingest_metric {
    INGEST_REQUESTS,
    INGEST_SECONDS,
    INGEST_REQUESTS_IN_HAND,
    INGEST_BYTES_IN_HAND,
    INGEST_PRODUCE_FAILURES,
    INGEST_JWKS_AGE,
    INGEST_LIMITER_FALLBACKS,
    INGEST_PROVENANCE,
    INGEST_METRICS,
};
extern const struct metric_family ingest_metrics[INGEST_METRICS];

#endif

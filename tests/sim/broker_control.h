/* Faults of the broker in memory, asked for by lines that come through a named pipe. */
#ifndef CRCR_SIM_BROKER_CONTROL_H
#define CRCR_SIM_BROKER_CONTROL_H

#include <signal.h>

#include "../../common/base/err.h"

struct rd_kafka_mock_cluster_s;

/* Waits for one of these signals, which are blocked; NULL as path: for nothing else. Else makes the
 * named pipe there, and does what its lines say (broker_control_help) until a signal comes; each
 * line is answered on stdout. brokers: how many there are. ERR_STOP: no pipe can be made there. */
enum err broker_control_wait(struct rd_kafka_mock_cluster_s *cluster, int brokers, const char *path,
                             const sigset_t *ends, struct why *why) MUST_CHECK;

/* What the lines may say, for --help. */
const char *broker_control_help(void);

#endif

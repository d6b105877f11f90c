/* Named points at which a build for the fault tests (preset faults) can be killed: the environment
 * variable FAULT_POINT=<name>[:<n>[:hang|:exit]] sends SIGKILL to the process when it passes that
 * point for the n-th time (1), or lets the thread that does so stand still for ever, or end, and
 * says so on stderr. In every other build a point is nothing at all.
 * tests/faults/rows/row_02_points.py passes each of them. */
#ifndef CRCR_BASE_FAULT_H
#define CRCR_BASE_FAULT_H

#ifdef CRCR_FAULT_POINTS
#define FAULT_POINT(name) fault_point(name)
#else
#define FAULT_POINT(name) ((void)0)
#endif

/* Counts one passing; does not return when it was the one. Any thread. */
void fault_point(const char *name);

#endif

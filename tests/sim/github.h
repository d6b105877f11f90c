/* crcr-sim github: a GitHub to test against. */
#ifndef CRCR_SIM_GITHUB_H
#define CRCR_SIM_GITHUB_H

/* argv[0] is "github". Serves until SIGTERM or SIGINT. The exit code: 0 ended so, 1 it could not
 * start, 2 usage. */
int sim_github_main(int argc, char **argv);

#endif

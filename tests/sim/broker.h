/* `crcr-sim broker`: a Kafka broker in this process's memory (librdkafka's mock cluster) with our
 * topics, for a first look without Java. It keeps nothing. */
#ifndef CRCR_SIM_BROKER_H
#define CRCR_SIM_BROKER_H

/* argv[0] is "broker". The exit code: 0 ended by SIGTERM or SIGINT, 1 it could not start, 2 usage.
 */
int sim_broker_main(int argc, char **argv);

#endif

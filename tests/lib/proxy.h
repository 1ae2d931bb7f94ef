/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* proxy.h - a way to the test's PostgreSQL server on which a byte of an answer is changed, or
 * which goes mute, or is cut. */
#ifndef DET_TEST_PROXY_H
#define DET_TEST_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/postgres.h"

struct det_test_proxy;

struct det_test_proxy *det_test_proxy_open(const struct det_test_postgres *postgres);
void det_test_proxy_close(struct det_test_proxy *proxy);
/* On 127.0.0.1. */
unsigned det_test_proxy_port(const struct det_test_proxy *proxy);
/* Counts what is answered from here on, on all connections together, and changes the bits of `mask`
 * in the byte with this number, from 1; 0: in none. */
void det_test_proxy_arm(struct det_test_proxy *proxy, uint64_t at, unsigned mask);
/* How many bytes were answered since. */
uint64_t det_test_proxy_passed(struct det_test_proxy *proxy);
/* From here on, a connection through which this word is sent passes nothing any more, and stays
 * open; NULL: none. The word is not copied. */
void det_test_proxy_mute(struct det_test_proxy *proxy, const char *word);
/* Whether there is or was one that went mute. */
bool det_test_proxy_was_mute(struct det_test_proxy *proxy);
/* From here on that many bytes are answered, on all connections together; then there are no
 * connections any more, and no new ones, until this is called again. UINT64_MAX: without an end. */
void det_test_proxy_cut(struct det_test_proxy *proxy, uint64_t after);
/* free() the URL of the same schema through the proxy. */
char *det_test_proxy_url(const struct det_test_proxy *proxy, const char *url);

#endif

/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_watch.h - whether the store of machines, workers or durable slots is reachable; there may
 * be none. On the loop's thread, unless a comment says otherwise. */
#ifndef DET_DAEMON_STORE_WATCH_H
#define DET_DAEMON_STORE_WATCH_H

#include <detent/base.h>

struct up;
struct up_store_watch;

/* True if it has failed permanently. */
bool up_store_is_lost(struct up *up);
/* True if there is no connection to it now; `text` has the reason. */
#define UP_UNREACHABLE_TEXT 256
bool up_store_is_unreachable(struct up *up, char text[UP_UNREACHABLE_TEXT]);
/* True for a store with a connection, which may be lost. */
bool up_store_is_remote(const struct up *up);
/* Waits for an answer of the store; an error if there is none. Any thread. */
int up_store_ask(struct up *up);
/* From now on no call waits longer than `span` for the store; DET_NEVER: no limit. */
void up_store_limit(struct up *up, det_time span);

/* Call before a store is used. 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int up_store_watch_open(struct up *up);
/* From now on the loss and the return of a connection are reported. Call again after a reload. */
DET_MUST_CHECK int up_store_watch(struct up *up);
/* Reports the reason of an error that clients of the API do not see, once in ten seconds. Any
 * thread. */
void up_store_report(struct up *up, const char *text);
/* Call before the loop is closed, and after. */
void up_store_watch_close(struct up *up);
void up_store_watch_free(struct up *up);

#endif

/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* audit_log.h - logs changes of a running detent and the clients that make them. Any thread, unless
 * a comment says otherwise. */
#ifndef DET_DAEMON_AUDIT_LOG_H
#define DET_DAEMON_AUDIT_LOG_H

#include "daemon/audit.h"

struct up;
struct up_audit;

/* On the loop's thread. 0 or DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int up_audit_open(struct up *up);
/* Accepts no more records. Close the loop next, then call up_audit_free(). */
void up_audit_close(struct up *up);
void up_audit_free(struct up *up);
/* No effect after up_audit_close(). */
void up_audit_add(struct up *up, const struct audit_action *action);
/* Records a signal. */
void up_audit_signal(struct up *up, const char *what, int64_t uid);
/* Callbacks of tokens_options. */
void up_tokens_problem(void *user, const char *text, bool is_closed);
void up_tokens_changed(void *user, const struct token *token, bool is_new);

#endif

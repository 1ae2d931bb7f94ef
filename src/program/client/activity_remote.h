/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity_remote.h - which effects of an instance run now, reported by the daemon of its store. */
#ifndef DET_CLIENT_ACTIVITY_REMOTE_H
#define DET_CLIENT_ACTIVITY_REMOTE_H

#include "inspect/stored_instance.h"

/* Asks the `detent up` that serves the instance's store. Without an answer the activity stays
 * unknown. */
void activity_ask(struct instance *instance);

#endif

/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* activity_remote.h - which effects of an instance run now, as the detent that serves it knows. */
#ifndef DET_CLIENT_ACTIVITY_REMOTE_H
#define DET_CLIENT_ACTIVITY_REMOTE_H

#include "inspect/stored_instance.h"

/* Asks the `detent up` of this project, if it serves the instance's store. Without one, or without
 * an answer, nothing is known. */
void activity_ask(struct instance *instance);

#endif

/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* rows_end.h - undefines everything of a worker's spec: rows, words, settings. No include guard on
 * purpose. */
#include <detent/worker/rows_none.h>

#undef MILLISECONDS
#undef SECONDS
#undef MINUTES
#undef HOURS
#undef DAYS
#undef STOP
#undef TIMEOUT
#undef WORKER_NAME
#undef WORKER_PREFIX
#undef WORKER_DESIRED
#undef WORKER_OBSERVED
#undef WORKER_CONFIG
#undef WORKER_DEPS
#undef WORKER_DERIVE
#undef WORKER_CHILDREN
#undef WORKER_EVERY
#undef WORKER_TIMEOUT
#undef WORKER_ERRORS
#undef WORKER_BLIND
#undef WORKER_LOCAL
#undef WORKER_SPEC

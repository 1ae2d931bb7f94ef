/* expect: before this template */
#ifdef MENDED
#define WORKER_SPEC "link.worker"
#endif
#include <detent/worker/declare.h>

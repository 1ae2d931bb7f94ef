/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store.h - the drivers, for other parts of the library. */
#ifndef DET_STORE_STORE_H
#define DET_STORE_STORE_H

#include <detent/driver/store.h>

#define DET_STORE_DRIVER(scheme) extern const struct det_store_driver det_store_driver_##scheme;
#include "store/drivers.def"
#undef DET_STORE_DRIVER

/* Returns the driver with this index; NULL at the end. */
const struct det_store_driver *det_store_driver_at(size_t index);
/* DET_ERR_VERSION: the driver was built for another version of driver/store.h. */
DET_MUST_CHECK int det_store_driver_check(
    const struct det_store_driver *driver, struct det_error *reterr);

/* Checks a URL without opening it: 0, DET_ERR_INVALID or DET_ERR_UNSUPPORTED. */
DET_MUST_CHECK int det_store_check_url(const char *url, struct det_error *reterr);

/* Ids of instances, events and jobs: 1 to DET_ID_MAX of [A-Za-z0-9._:-]. */
bool det_store_id_is_valid(const char *id);

#endif

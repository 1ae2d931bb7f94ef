/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* It needs <stdint.h>. */
#ifndef DETENT_ALONE_H
#define DETENT_ALONE_H
uint32_t det_alone(void);
#endif

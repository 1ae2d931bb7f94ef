/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* It uses a word of C++. */
#ifndef DETENT_CPLUSPLUS_H
#define DETENT_CPLUSPLUS_H
int det_cplusplus(int class);
#endif

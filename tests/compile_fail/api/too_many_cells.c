/* expect: states times events must be at most */
#define TEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n) \
    TEN(X, n##0)      \
    TEN(X, n##1)      \
    TEN(X, n##2)      \
    TEN(X, n##3) TEN(X, n##4) TEN(X, n##5) TEN(X, n##6) TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)
#define CROWD_ROWS(n) STATE(S##n, s##n) EVENT(E##n, e##n) ON(S##n, E##n, S##n)
#ifndef MENDED
#define CROWD(X) \
    HUNDRED(X, 1) HUNDRED(X, 2) HUNDRED(X, 3) HUNDRED(X, 4) HUNDRED(X, 5) TEN(X, 60) TEN(X, 61)
#else
#define CROWD(X) HUNDRED(X, 1)
#endif

#define FSM_SPEC "crowd.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "crowd.fsm"
#include <detent/fsm/define.h>

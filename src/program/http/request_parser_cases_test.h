/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* request_parser_cases_test.h - raw requests with their verdicts: BAD(bytes, refusal) and
 * GOOD(bytes, parsed request), included where a table is made of them. */
#define END  "\r\n\r\n"
#define HOST "Host: a\r\n"
#define POST "POST /p HTTP/1.1\r\n" HOST
#define LONG "0123456789012345678901234567890123456789012345678901234567890123"

/* The first line. */
BAD("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", FIRST_BYTE)
BAD("\r\n GET / HTTP/1.1\r\n" HOST "\r\n", FIRST_BYTE)
BAD("\rGET / HTTP/1.1\r\n" HOST "\r\n", FIRST_BYTE)
BAD("\r\r\nGET / HTTP/1.1\r\n" HOST "\r\n", FIRST_BYTE)
BAD("\nGET / HTTP/1.1\r\n" HOST "\r\n", FIRST_BYTE)
BAD(" GET / HTTP/1.1\r\n" HOST "\r\n", FIRST_BYTE)
BAD("\x16\x03\x01\x02", FIRST_BYTE)
BAD("\0GET / HTTP/1.1\r\n", FIRST_BYTE)
BAD("{\"a\":1}", FIRST_BYTE)
BAD("GET / HTTP/1.1\nHost: a\n\n", BARE_LF)
BAD("GET / HTTP/1.1\n", BARE_LF)
BAD("GET / HTTP/1.1\r\r\n" HOST "\r\n", BARE_CR)
BAD("GET /\r HTTP/1.1\r\n" HOST "\r\n", BARE_CR)
BAD("GET /\r\n", REQUEST_LINE)
BAD("GET\r\n", REQUEST_LINE)
BAD("GET  / HTTP/1.1\r\n", REQUEST_LINE)
BAD("GET /  HTTP/1.1\r\n", REQUEST_LINE)
BAD("GET / HTTP/1.1 \r\n", REQUEST_LINE)
BAD("GET /a b HTTP/1.1\r\n", REQUEST_LINE)
BAD("GET\t/ HTTP/1.1\r\n", REQUEST_LINE)
BAD("G@T / HTTP/1.1\r\n", METHOD)
BAD("GE\0T / HTTP/1.1\r\n", METHOD)
BAD("G\x80T / HTTP/1.1\r\n", METHOD)
BAD("CONNECT a:80 HTTP/1.1\r\n", METHOD_UNSUPPORTED)
BAD("GET / HTTP/1.1x\r\n", VERSION)
BAD("GET / HTTP/11\r\n", VERSION)
BAD("GET / HTTP/1,1\r\n", VERSION)
BAD("GET / http/1.1\r\n", VERSION)
BAD("GET / HTTP/x.1\r\n", VERSION)
BAD("GET / HTTP/1.x\r\n", VERSION)
BAD("GET / HTTP/1.10\r\n", VERSION)
BAD("GET / \r\n", VERSION)
BAD("GET / HTTP/1.2\r\n", VERSION_UNSUPPORTED)
BAD("GET / HTTP/0.9\r\n", VERSION_UNSUPPORTED)
BAD("GET / HTTP/2.0\r\n", VERSION_UNSUPPORTED)
BAD("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", VERSION_UNSUPPORTED)

/* The target. */
BAD("GET a HTTP/1.1\r\n", TARGET)
BAD("GET * HTTP/1.1\r\n", TARGET)
BAD("OPTIONS *a HTTP/1.1\r\n", TARGET)
BAD("GET ?a HTTP/1.1\r\n", TARGET)
BAD("GET ftp://a/ HTTP/1.1\r\n", TARGET)
BAD("GET http:// HTTP/1.1\r\n", TARGET)
BAD("GET http:///a HTTP/1.1\r\n", TARGET)
BAD("GET http://u:p@a/ HTTP/1.1\r\n", TARGET)
BAD("GET http://a:b/ HTTP/1.1\r\n", TARGET)
BAD("GET http://[::1/ HTTP/1.1\r\n", TARGET)
BAD("GET http:/a HTTP/1.1\r\n", TARGET)
BAD("GET /\x01 HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /\x7f HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /\xc3\xa4 HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /\0a HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a\tb HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a#b HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a\\b HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a{b} HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a[b] HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a?b\x01 HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a?b#c HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /a?\xff HTTP/1.1\r\n", TARGET_BYTE)
BAD("GET /% HTTP/1.1\r\n", TARGET_PERCENT)
BAD("GET /%4 HTTP/1.1\r\n", TARGET_PERCENT)
BAD("GET /%4g HTTP/1.1\r\n", TARGET_PERCENT)
BAD("GET /%g4 HTTP/1.1\r\n", TARGET_PERCENT)
BAD("GET /%4?1 HTTP/1.1\r\n", TARGET_PERCENT)
BAD("GET /?a=%zz HTTP/1.1\r\n", TARGET_PERCENT)
BAD("GET /a%00b HTTP/1.1\r\n", TARGET_NUL)
BAD("GET /a?b=%00 HTTP/1.1\r\n", TARGET_NUL)
BAD("GET http://b/ HTTP/1.1\r\n" HOST "\r\n", TARGET_HOST)
BAD("GET http://a:80/ HTTP/1.1\r\n" HOST "\r\n", TARGET_HOST)
BAD("GET http://b/ HTTP/1.0\r\n" HOST "\r\n", TARGET_HOST)

/* Headers. */
BAD("GET / HTTP/1.1\r\n Host: a\r\n\r\n", FOLDED)
BAD("GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", FOLDED)
BAD("GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n", FOLDED)
BAD("GET / HTTP/1.1\r\n" HOST " \r\n\r\n", FOLDED)
BAD("GET / HTTP/1.1\r\n" HOST "X\r\n\r\n", HEADER_COLON)
BAD("GET / HTTP/1.1\r\nHost\r\n\r\n", HEADER_COLON)
BAD("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n", HEADER_NAME)
BAD("GET / HTTP/1.1\r\nHost : a\r\n\r\n", HEADER_NAME)
BAD("GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", HEADER_NAME)
BAD("GET / HTTP/1.1\r\n" HOST "A B: a\r\n\r\n", HEADER_NAME)
BAD("GET / HTTP/1.1\r\n" HOST "A\0: a\r\n\r\n", HEADER_NAME)
BAD("GET / HTTP/1.1\r\n" HOST "A\xe4: a\r\n\r\n", HEADER_NAME)
BAD("GET / HTTP/1.1\r\n" HOST "(A): a\r\n\r\n", HEADER_NAME)
BAD("GET / HTTP/1.1\r\n" HOST "A: a\0b\r\n\r\n", HEADER_BYTE)
BAD("GET / HTTP/1.1\r\n" HOST "A: a\x01\r\n\r\n", HEADER_BYTE)
BAD("GET / HTTP/1.1\r\n" HOST "A: a\x7f\r\n\r\n", HEADER_BYTE)
BAD("GET / HTTP/1.1\r\n" HOST "A: a\x0b"
    "b\r\n\r\n",
    HEADER_BYTE)
BAD("GET / HTTP/1.1\r\n" HOST "A: a\rb\r\n\r\n", BARE_CR)
BAD("GET / HTTP/1.1\r\n" HOST "A: a\r\r\n\r\n", BARE_CR)
BAD("GET / HTTP/1.1\r\n" HOST "A: a\nB: b\r\n\r\n", BARE_LF)
BAD("GET / HTTP/1.1\r\n" HOST "\n", BARE_LF)
BAD("GET / HTTP/1.1\r\n" HOST "\r\r\n", BARE_CR)

/* Host. */
BAD("GET / HTTP/1.1\r\n\r\n", HOST_MISSING)
BAD("GET / HTTP/1.1\r\nHosts: a\r\n\r\n", HOST_MISSING)
BAD("GET http://a/ HTTP/1.1\r\n\r\n", HOST_MISSING)
BAD("GET / HTTP/1.1\r\n" HOST HOST "\r\n", HOST_TWICE)
BAD("GET / HTTP/1.1\r\n" HOST "hOST: b\r\n\r\n", HOST_TWICE)
BAD("GET / HTTP/1.0\r\n" HOST HOST "\r\n", HOST_TWICE)
BAD("GET / HTTP/1.1\r\nHost:\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a:\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: :80\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: []\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: [::g]\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: [::1]a\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: a[::1]\r\n\r\n", HOST)
BAD("GET / HTTP/1.1\r\nHost: \xe4\r\n\r\n", HOST)

BAD("GET / HTTP/1.1\r\n" HOST "Authorization: a\r\nauthorization: a\r\n\r\n", HEADER_TWICE)
BAD("GET / HTTP/1.1\r\n" HOST "Content-Type: a\r\nContent-Type: a\r\n\r\n", HEADER_TWICE)
BAD("GET / HTTP/1.1\r\n" HOST "Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n", HEADER_TWICE)
BAD("GET / HTTP/1.1\r\n" HOST "Last-Event-ID: 1\r\nLast-Event-ID: 2\r\n\r\n", HEADER_TWICE)
BAD("GET / HTTP/1.1\r\n" HOST "Origin: a\r\nOrigin: b\r\n\r\n", HEADER_TWICE)
BAD("GET / HTTP/1.1\r\n" HOST "Sec-Fetch-Site: a\r\nSec-Fetch-Site: b\r\n\r\n", HEADER_TWICE)

/* How long a body is. */
BAD(POST "Content-Length: +5" END "hello", LENGTH)
BAD(POST "Content-Length: -5" END "hello", LENGTH)
BAD(POST "Content-Length: 0x5" END "hello", LENGTH)
BAD(POST "Content-Length: 5 5" END "hello", LENGTH)
BAD(POST "Content-Length: 5, 5" END "hello", LENGTH)
BAD(POST "Content-Length: 5.0" END "hello", LENGTH)
BAD(POST "Content-Length: five" END "hello", LENGTH)
BAD(POST "Content-Length:" END "hello", LENGTH)
BAD(POST "Content-Length: 18446744073709551621" END "hello", LENGTH)
BAD(POST "Content-Length: 00000000000000000005" END "hello", LENGTH)
BAD(POST "Content-Length: 5\r\nContent-Length: 5" END "hello", LENGTH_TWICE)
BAD(POST "Content-Length: 5\r\ncontent-length: 6" END "hello", LENGTH_TWICE)
BAD(POST "Content-Length: 5\r\nTransfer-Encoding: chunked" END "0" END, LENGTH_AND_ENCODING)
BAD(POST "Transfer-Encoding: chunked\r\nContent-Length: 5" END "0" END, LENGTH_AND_ENCODING)
BAD(POST "Transfer-Encoding: chunked\r\nContent-Length: 0" END "0" END, LENGTH_AND_ENCODING)
BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" END, ENCODING_TWICE)
BAD(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity" END, ENCODING_TWICE)
BAD("POST / HTTP/1.0\r\nTransfer-Encoding: chunked" END "0" END, ENCODING_VERSION)
BAD(POST "Transfer-Encoding: identity" END, ENCODING)
BAD(POST "Transfer-Encoding: gzip, chunked" END, ENCODING)
BAD(POST "Transfer-Encoding: chunked, chunked" END, ENCODING)
BAD(POST "Transfer-Encoding: xchunked" END, ENCODING)
BAD(POST "Transfer-Encoding: chunked;q=1" END, ENCODING)
BAD(POST "Transfer-Encoding:" END, ENCODING)
BAD(POST "Transfer-Encoding: \"chunked\"" END, ENCODING)
BAD(POST "Content-Length: 101" END, BODY_LONG)
BAD(POST "Content-Length: 9999999999999999999" END, BODY_LONG)
BAD(POST "Content-Length: 5\r\nContent-Encoding: gzip" END, CONTENT_ENCODING)
BAD(POST "Content-Encoding:" END, CONTENT_ENCODING)
BAD(POST "Content-Length: 5\r\nExpect: 200-ok" END, EXPECT)
BAD(POST "Expect:" END, EXPECT)

/* Chunks. */
BAD(POST "Transfer-Encoding: chunked" END "\r\n", CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "g\r\n", CHUNK_SIZE)
#define CHUNKED(line) POST "Transfer-Encoding: chunked" END line "\r\nhello\r\n0" END
BAD(CHUNKED("5;"), CHUNK_EXTENSION)
BAD(CHUNKED("5;;a"), CHUNK_EXTENSION)
BAD(CHUNKED("5; a=b"), CHUNK_EXTENSION)
BAD(CHUNKED("5 ;a=b"), CHUNK_SIZE)
BAD(CHUNKED("5;a= b"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=b "), CHUNK_EXTENSION)
BAD(CHUNKED("5;a="), CHUNK_EXTENSION)
BAD(CHUNKED("5;=b"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=b=c"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=\"b"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=\"b\\"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=\"b\"c"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=\"\x01\""), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=\0"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a=\"\n\""), CHUNK_EXTENSION)
BAD(CHUNKED("5;a\nhello\r\n0\r\n\r\nGET /x HTTP/1.1"), CHUNK_EXTENSION)
BAD(CHUNKED("5;\n0"), CHUNK_EXTENSION)
BAD(CHUNKED("5;a\rb"), CHUNK_SIZE)
BAD(CHUNKED("5;a=\"\r\n\""), CHUNK_EXTENSION)
BAD(CHUNKED("5,a=b"), CHUNK_SIZE)
#define X16   "0123456789abcdef"
#define X256  X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16 X16
#define X1024 X256 X256 X256 X256
BAD(CHUNKED("5;" X1024), CHUNK_EXTENSIONS_LONG)
BAD(POST "Transfer-Encoding: chunked" END "1;" X256 X256 "\r\nh\r\n1;" X256 X256,
    CHUNK_EXTENSIONS_LONG)
BAD(POST "Transfer-Encoding: chunked" END "5 \r\nhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END " 5\r\nhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "+5\r\nhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "-5\r\nhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "0x5\r\nhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "5\nhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "5\rhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "000000005\r\nhello\r\n0" END, CHUNK_SIZE)
BAD(POST "Transfer-Encoding: chunked" END "5\r\nhello0" END, CHUNK_END)
BAD(POST "Transfer-Encoding: chunked" END "5\r\nhello\n0" END, CHUNK_END)
BAD(POST "Transfer-Encoding: chunked" END "5\r\nhello\r0" END, CHUNK_END)
BAD(POST "Transfer-Encoding: chunked" END "4\r\nhello\r\n0" END, CHUNK_END)
#define TRAILED(lines) POST "Transfer-Encoding: chunked" END "5\r\nhello\r\n0\r\n" lines
BAD(TRAILED("\n"), BARE_LF)
BAD(TRAILED("A: b\n\r\n"), BARE_LF)
BAD(TRAILED("A: b\r\n\n"), BARE_LF)
BAD(TRAILED("\r\r\n"), BARE_CR)
BAD(TRAILED("A: b\rc\r\n\r\n"), BARE_CR)
BAD(TRAILED("A b" END), HEADER_COLON)
BAD(TRAILED("A : b" END), HEADER_NAME)
BAD(TRAILED("A: b\0c" END), HEADER_BYTE)
BAD(TRAILED(" A: b" END), FOLDED)
BAD(TRAILED("A: b\r\n c" END), FOLDED)
BAD(TRAILED("GET /x HTTP/1.1" END), HEADER_COLON)
BAD(TRAILED("Content-Length: 5" END), TRAILER)
BAD(TRAILED("transfer-encoding: chunked" END), TRAILER)
BAD(TRAILED("Host: b" END), TRAILER)
BAD(TRAILED("Authorization: Bearer x" END), TRAILER)
BAD(TRAILED("Connection: close" END), TRAILER)
BAD(TRAILED("A: " LONG "\r\nB: " LONG "\r\nC: " LONG END), TRAILERS_LONG)
BAD(TRAILED("A:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:" END), TRAILERS_LONG)
BAD(POST "Transfer-Encoding: chunked" END "65\r\n", BODY_LONG)
BAD(POST "Transfer-Encoding: chunked" END "ffffffff\r\n", BODY_LONG)
BAD(POST "Transfer-Encoding: chunked" END "5\r\nhello\r\n60\r\n", BODY_LONG)

/* Limits of the suite: a line of 80, headers of 200 and 5, a body of 100. */
BAD("GET /" LONG "0 HTTP/1.1\r\n", LINE_LONG)
BAD("GET /" LONG LONG, LINE_LONG)
BAD("G" LONG "012345678901234567890123456789", LINE_LONG)
BAD("GET / HTTP/1.1\r\n" HOST "A: " LONG LONG LONG, HEADERS_LONG)
BAD("GET / HTTP/1.1\r\n" HOST "A: " LONG "\r\nB: " LONG "\r\nC: " LONG END, HEADERS_LONG)
BAD("GET / HTTP/1.1\r\n" HOST "A:\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n", HEADERS_MANY)

/* Requests that are accepted. */
GOOD("GET / HTTP/1.1\r\n" HOST "\r\n", "GET / [] a host=a keep")
GOOD(
    "GET /a/b%20c?d=e&f[]=%2f?/ HTTP/1.1\r\n" HOST "\r\n",
    "GET /a/b%20c [d=e&f[]=%2f?/] a host=a keep")
GOOD("GET /? HTTP/1.1\r\n" HOST "\r\n", "GET / [] a host=a keep")
GOOD("GET //a/../b;c=d HTTP/1.1\r\n" HOST "\r\n", "GET //a/../b;c=d [] a host=a keep")
GOOD("\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "GET / [] a host=a keep")
GOOD("TRACE / HTTP/1.1\r\n" HOST "\r\n", "*TRACE / [] a host=a keep")
GOOD("get / HTTP/1.1\r\n" HOST "\r\n", "*get / [] a host=a keep")
GOOD("M-SEARCH / HTTP/1.1\r\n" HOST "\r\n", "*M-SEARCH / [] a host=a keep")
GOOD("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS * [] a host=a keep")
GOOD("GET http://a/b?c HTTP/1.1\r\n" HOST "\r\n", "GET /b [c] a host=a keep")
GOOD("GET HTTPS://A HTTP/1.1\r\n" HOST "\r\n", "GET / [] a host=a keep")
GOOD("GET http://a?b HTTP/1.1\r\n" HOST "\r\n", "GET / [b] a host=a keep")
GOOD("GET http://a:8/ HTTP/1.0\r\n\r\n", "GET / [] a:8")
GOOD("GET / HTTP/1.0\r\n\r\n", "GET / [] ")
GOOD("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / []  connection=Keep-Alive keep")
GOOD(
    "GET / HTTP/1.1\r\n" HOST "Connection: x ,\tClose, y\r\n\r\n",
    "GET / [] a host=a connection=x ,\tClose, y")
GOOD(
    "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n",
    "GET / [] a host=a connection=closed keep")
GOOD(
    "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "GET / [] a host=a connection=keep-alive, Upgrade upgrade=h2c keep")
GOOD("GET / HTTP/1.1\r\nHOST:\t [::1]:80 \t\r\n\r\n", "GET / [] [::1]:80 host=[::1]:80 keep")
GOOD(
    "GET / HTTP/1.1\r\n" HOST "X:\r\nY: a\tb\xe4  c \r\n\r\n",
    "GET / [] a host=a x= y=a\tb\xe4  c keep")
GOOD(
    "GET / HTTP/1.1\r\n" HOST "A:1\r\nA:2\r\n!#$%&'*+-.^_`|~9:\r\n\r\n",
    "GET / [] a host=a a=1 a=2 !#$%&'*+-.^_`|~9= keep")
GOOD(POST "Content-Length: 5" END "hello", "POST /p [] a host=a content-length=5 keep 5:hello")
GOOD(POST "Content-Length: 0" END, "POST /p [] a host=a content-length=0 keep")
GOOD(POST "Content-Length: 05" END "a\0b\r\n", "POST /p [] a host=a content-length=05 keep 5:a")
GOOD(POST "Content-Encoding: Identity" END, "POST /p [] a host=a content-encoding=Identity keep")
GOOD(
    POST "Transfer-Encoding: Chunked" END "0" END,
    "POST /p [] a host=a transfer-encoding=Chunked keep")
GOOD(
    POST "Transfer-Encoding: chunked" END "00000005\r\nhello\r\n0" END,
    "POST /p [] a host=a transfer-encoding=chunked keep 5:hello")
GOOD(
    POST "Transfer-Encoding: chunked" END "1\r\nh\r\n3\r\nell\r\nA\r\no, world.\r\r\n000" END,
    "POST /p [] a host=a transfer-encoding=chunked keep 14:hello, world.\r")
#define READ_CHUNKED "POST /p [] a host=a transfer-encoding=chunked keep 5:hello"
GOOD(CHUNKED("5;a"), READ_CHUNKED)
GOOD(CHUNKED("5;a=b;c;d=\"e;\\\"f\xe4\t \";g"), READ_CHUNKED)
GOOD(CHUNKED("005;a=\"\""), READ_CHUNKED)
GOOD(POST "Transfer-Encoding: chunked" END "2;a\r\nhe\r\n3;b=c\r\nllo\r\n0;d" END, READ_CHUNKED)
GOOD(TRAILED("A: b" END), READ_CHUNKED)
GOOD(TRAILED("A:\r\nTrailer-B: c\t d\xe4\r\n\r\n"), READ_CHUNKED)
GOOD(
    POST "Content-Length: 5\r\nExpect: 100-Continue" END "hello",
    "POST /p [] a host=a content-length=5 expect=100-Continue keep continue 5:hello")
GOOD(POST "Expect: 100-continue" END, "POST /p [] a host=a expect=100-continue keep")
GOOD(
    "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue" END "x",
    "POST / []  content-length=1 expect=100-continue 1:x")
GOOD("GET /" LONG " HTTP/1.1\r\n" HOST "\r\n", "GET /" LONG " [] a host=a keep")
GOOD("GET / HTTP/1.1\r\n" HOST "A:\r\nB:\r\nC:\r\nD:\r\n\r\n", "GET / [] a host=a a= b= c= d= keep")
#undef CHUNKED
#undef TRAILED
#undef READ_CHUNKED
#undef X16
#undef X256
#undef X1024
#undef END
#undef HOST
#undef POST
#undef LONG

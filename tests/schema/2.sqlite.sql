-- SPDX-License-Identifier: MIT
-- Copyright the detent authors

-- A SQLite store of schema 2: that of schema 1, as the program of that time has upgraded it. It stays as it is.
BEGIN;
PRAGMA application_id = 1684370533;
PRAGMA user_version = 2;
CREATE TABLE store (one INTEGER PRIMARY KEY CHECK (one = 1), identity TEXT NOT NULL, schema INTEGER NOT NULL, created_at INTEGER NOT NULL, program TEXT NOT NULL);
INSERT INTO store VALUES(1,'00112233445566778899aabbccddeeff',2,1794753139028099639,'0.1.0');
CREATE TABLE definitions (machine TEXT NOT NULL, version INTEGER NOT NULL, fingerprint TEXT NOT NULL, spec TEXT NOT NULL, served_at INTEGER NOT NULL, PRIMARY KEY (machine, version, fingerprint)) WITHOUT ROWID;
INSERT INTO definitions VALUES('pad',1,'dc80a19ffc55740b29162420c5d12478',replace('#define FSM_NAME pad\n#define FSM_PREFIX PAD\n#define FSM_DATA pad_data\n\nRECORD(pad_data)\n    FIELD(number, u64)\nEND\n\nRECORD(note)\n    FIELD(number, u64)\n    FIELD(text,   str(99))\nEND\n\nRECORD(small)\n    FIELD(number, u64)\nEND\n\nSTATE(A, A, INITIAL)\nSTATE(B, B)\n\nEVENT(TEXT,  TEXT,  note)\nEVENT(SMALL, SMALL, small)\nEVENT(BARE,  BARE)\n\nEFFECT(ring)\n\nTIMER(later, HOURS(1), BARE)\n\nON(A, TEXT,  B, DO(ring), ARM(later))\nON(A, SMALL, B, DO(ring), ARM(later))\nON(A, BARE,  B, DO(ring), ARM(later))\n\nON(B, TEXT,  A, DO(ring), ARM(later))\nON(B, SMALL, A, DO(ring), ARM(later))\nON(B, BARE,  A, DO(ring), ARM(later))\n','\n',char(10)),1794753139054209353);
CREATE TABLE instances (key INTEGER PRIMARY KEY, machine TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, sequence INTEGER NOT NULL, visit INTEGER NOT NULL, transitions INTEGER NOT NULL, started_at INTEGER NOT NULL, moved_at INTEGER NOT NULL, stopped INTEGER NOT NULL, reason TEXT, data BLOB NOT NULL, hash BLOB NOT NULL, last_event INTEGER NOT NULL, checksum INTEGER NOT NULL, fence INTEGER NOT NULL, lock_owner TEXT, lock_until INTEGER, UNIQUE (machine, id));
INSERT INTO instances VALUES(1,'pad','q',1,'A',0,1,0,100,100,0,NULL,X'01010109ba30735b',X'd6353cb5a68a1ff21d4df93b4d66957809e6641d3ef5e801480c1a1b21ee2f00',0,3119618035,0,NULL,NULL);
INSERT INTO instances VALUES(2,'pad','p',1,'A',4,5,4,100,104,0,NULL,X'01010102819bfac2',X'c44b0a2de33a76e62bc2cd4e76de5933d53e04a5ec3f3500ccf744b3f113e079',4,46907164,0,NULL,NULL);
CREATE TABLE events (position INTEGER PRIMARY KEY, instance INTEGER NOT NULL, sequence INTEGER NOT NULL, previous INTEGER NOT NULL, version INTEGER NOT NULL, visit INTEGER NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, event TEXT, outcome TEXT NOT NULL, choice INTEGER NOT NULL, timeout INTEGER NOT NULL, at INTEGER NOT NULL, event_id TEXT, cause TEXT, payload BLOB, hash BLOB NOT NULL);
INSERT INTO events VALUES(1,2,1,0,1,2,'A','B','TEXT','goto',0,0,101,'id-1',NULL,X'0101080006746578742031da023a20',X'800466cec92c0fa5a82ee800413a06851a74c68963a4eb5b09d623e0ce8b4655');
INSERT INTO events VALUES(2,2,2,1,1,3,'B','A','SMALL','goto',0,0,102,NULL,NULL,X'010101069e0c6005',X'a68d9be7038dfea80de2457f23700719bfce696ee30eaa27483c9b250d73a9b4');
INSERT INTO events VALUES(3,2,3,2,1,4,'A','B','SMALL','goto',0,0,103,NULL,'pad/p/3/0',X'01010109ba30735b',X'4705a9cc7a1459349a1f4107a44be873d5d04722bb0c27a481c80b9a445004da');
INSERT INTO events VALUES(4,2,4,3,1,5,'B','A','BARE','goto',0,0,104,NULL,NULL,NULL,X'c44b0a2de33a76e62bc2cd4e76de5933d53e04a5ec3f3500ccf744b3f113e079');
CREATE TABLE snapshots (instance INTEGER PRIMARY KEY, version INTEGER NOT NULL, state TEXT NOT NULL, sequence INTEGER NOT NULL, visit INTEGER NOT NULL, transitions INTEGER NOT NULL, started_at INTEGER NOT NULL, moved_at INTEGER NOT NULL, stopped INTEGER NOT NULL, reason TEXT, data BLOB NOT NULL, hash BLOB NOT NULL, history TEXT NOT NULL, taken_at INTEGER NOT NULL, checksum INTEGER NOT NULL);
INSERT INTO snapshots VALUES(2,1,'B',3,4,3,100,103,0,NULL,X'01010102819bfac2',X'4705a9cc7a1459349a1f4107a44be873d5d04722bb0c27a481c80b9a445004da','A B A',1794753139055909685,2662063846);
CREATE TABLE timers (instance INTEGER NOT NULL, name TEXT NOT NULL, visit INTEGER NOT NULL, due INTEGER NOT NULL, event TEXT NOT NULL, payload BLOB, owner TEXT NOT NULL, machine TEXT NOT NULL, PRIMARY KEY (instance, name)) WITHOUT ROWID;
INSERT INTO timers VALUES(2,'',3,5000,'BARE',NULL,'','pad');
INSERT INTO timers VALUES(2,'later',3,6000,'SMALL',X'0101014d19ba92dd','','pad');
CREATE TABLE outbox (instance INTEGER NOT NULL, sequence INTEGER NOT NULL, number INTEGER NOT NULL, effect TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, visit INTEGER NOT NULL, asked INTEGER NOT NULL, at INTEGER NOT NULL, attempts INTEGER NOT NULL, last_error INTEGER NOT NULL, next_at INTEGER NOT NULL, data BLOB, event TEXT, payload BLOB, owner TEXT NOT NULL, machine TEXT NOT NULL, PRIMARY KEY (instance, sequence, number)) WITHOUT ROWID;
INSERT INTO outbox VALUES(2,2,0,'ring','B','A',2,3,102,0,0,102,X'010101056aff3016','SMALL',X'0101014d19ba92dd','','pad');
CREATE TABLE dead_letters (instance INTEGER NOT NULL, sequence INTEGER NOT NULL, number INTEGER NOT NULL, effect TEXT NOT NULL, from_state TEXT NOT NULL, to_state TEXT NOT NULL, visit INTEGER NOT NULL, asked INTEGER NOT NULL, at INTEGER NOT NULL, attempts INTEGER NOT NULL, last_error INTEGER NOT NULL, next_at INTEGER NOT NULL, data BLOB, event TEXT, payload BLOB, owner TEXT NOT NULL, dead_at INTEGER NOT NULL, PRIMARY KEY (instance, sequence, number)) WITHOUT ROWID;
INSERT INTO dead_letters VALUES(2,2,1,'ring','B','A',2,3,102,3,-5,102,X'010101056aff3016','SMALL',X'0101014d19ba92dd','',1794753139055317189);
CREATE TABLE deferred (instance INTEGER NOT NULL, sequence INTEGER NOT NULL, event TEXT NOT NULL, payload BLOB, PRIMARY KEY (instance, sequence)) WITHOUT ROWID;
INSERT INTO "deferred" VALUES(2,2,'SMALL',X'0101014d19ba92dd');
CREATE TABLE answers (instance INTEGER NOT NULL, event_id TEXT NOT NULL, outcome TEXT NOT NULL, state TEXT NOT NULL, sequence INTEGER NOT NULL, visit INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (instance, event_id)) WITHOUT ROWID;
INSERT INTO answers VALUES(2,'id-1','goto','B',1,2,1794753139054608960);
CREATE TABLE renames (number INTEGER PRIMARY KEY, machine TEXT NOT NULL, kind TEXT NOT NULL, old_name TEXT NOT NULL, new_name TEXT NOT NULL, batch INTEGER NOT NULL, position INTEGER NOT NULL);
CREATE TABLE leases (name TEXT PRIMARY KEY NOT NULL, token INTEGER NOT NULL, owner TEXT NOT NULL, expires_at INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO leases VALUES('l',1,'me',1794753140056201078);
CREATE TABLE starts (instance INTEGER PRIMARY KEY, position INTEGER NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL, at INTEGER NOT NULL);
CREATE TABLE jobs (key INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, id TEXT NOT NULL, task TEXT NOT NULL, body BLOB NOT NULL, state TEXT NOT NULL, due_at INTEGER NOT NULL, attempts INTEGER NOT NULL, owner TEXT NOT NULL, submitted_at INTEGER NOT NULL, ended_at INTEGER NOT NULL, reason TEXT NOT NULL, lost INTEGER NOT NULL DEFAULT 0, UNIQUE (queue, id));
CREATE TABLE schedules (name TEXT PRIMARY KEY NOT NULL, next_at INTEGER NOT NULL, last_at INTEGER NOT NULL, token INTEGER NOT NULL) WITHOUT ROWID;
DELETE FROM sqlite_sequence;
CREATE INDEX timers_due ON timers (machine, due);
CREATE INDEX outbox_next_at ON outbox (machine, next_at);
CREATE INDEX jobs_due ON jobs (queue, state, due_at);
CREATE INDEX jobs_ended ON jobs (ended_at) WHERE ended_at > 0;
COMMIT;

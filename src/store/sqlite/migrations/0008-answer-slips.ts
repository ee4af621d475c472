// Answers to idempotency keys, one behind the other: a slip holds as many as a page does, in the order in which they came.
// Where the answer to a key may be is found by a hash: of the latest ones in memory, of the others in segments, each of
// which was written once, in the order of the hashes. What `answers` holds stays there until it is forgotten.

export const answerSlips = `
CREATE TABLE answer_slips (
  slip INTEGER PRIMARY KEY,
  answers INTEGER NOT NULL CHECK (answers >= 1),
  -- The latest of them.
  answered_at INTEGER NOT NULL,
  entries BLOB NOT NULL
) STRICT;

-- A segment knows where the answers of some slips in sequence are. It counts once it is whole; one that is not, or that
-- nobody needs any more, is deleted a few buckets at a time.
CREATE TABLE answer_segments (
  segment INTEGER PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('building', 'whole', 'doomed')),
  level INTEGER NOT NULL CHECK (level >= 0),
  first_slip INTEGER NOT NULL,
  last_slip INTEGER NOT NULL CHECK (last_slip >= first_slip),
  entries INTEGER NOT NULL CHECK (entries >= 0),
  buckets INTEGER NOT NULL CHECK (buckets >= 1)
) STRICT;

-- The buckets of segment s are s × 2^20 and those behind it, each with the hashes of its part of the range.
CREATE TABLE answer_buckets (
  bucket INTEGER PRIMARY KEY,
  entries BLOB NOT NULL
) STRICT;

-- Whoever chooses keys does not know where they fall.
CREATE TABLE answer_seed (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  seed BLOB NOT NULL CHECK (length(seed) = 8)
) STRICT;

INSERT INTO answer_seed (only, seed) VALUES (1, randomblob(8));
`;

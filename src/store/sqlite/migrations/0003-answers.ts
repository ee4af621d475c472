// The answers that are kept for idempotency keys, clustered by end user. There is no index by time: what is too old is
// found by going round the table, which costs a write nothing.

export const answers = `
CREATE TABLE answers (
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  key TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  request TEXT NOT NULL,
  request_id TEXT NOT NULL,
  -- JSON; null where the request was accepted and there is no more to say.
  outcome TEXT,
  answered_at INTEGER NOT NULL,
  PRIMARY KEY (account, end_user, key)
) STRICT, WITHOUT ROWID;
`;

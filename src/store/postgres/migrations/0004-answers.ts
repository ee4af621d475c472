// The answers that are kept for idempotency keys, on the shard of their end user. The index is what they are forgotten
// by; new entries all go to its end.

export const answers = `
CREATE TABLE scrip.answers (
  bucket smallint NOT NULL,
  account integer NOT NULL,
  end_user uuid NOT NULL,
  key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  request text NOT NULL,
  request_id text NOT NULL,
  -- JSON; null where the request was accepted and there is no more to say.
  outcome text,
  answered_at bigint NOT NULL,
  PRIMARY KEY (bucket, account, end_user, key)
);
CREATE INDEX answers_by_age ON scrip.answers (bucket, answered_at);
`;

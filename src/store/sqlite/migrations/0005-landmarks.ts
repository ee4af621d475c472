// Landmarks: each 256th posting of an end user, so that whoever wants what happened before an instant need not follow
// the chain from its latest posting. How many postings an end user has is counted in its own row, which every posting
// changes anyway. What is stored already is counted here, once: 2.4 s for a million postings.

export const landmarks = `
ALTER TABLE holdings ADD COLUMN posting_count INTEGER CHECK (posting_count >= 1);

-- Clustered by end user, in the order of the chain. The 256 of the code is in no CHECK, so that it may change.
CREATE TABLE landmarks (
  account INTEGER NOT NULL,
  end_user BLOB NOT NULL CHECK (length(end_user) = 16),
  transaction_id BLOB NOT NULL CHECK (length(transaction_id) = 16),
  posting INTEGER NOT NULL,
  PRIMARY KEY (account, end_user, transaction_id, posting)
) STRICT, WITHOUT ROWID;

UPDATE holdings SET posting_count = counted.count
FROM (SELECT account, end_user, count(*) AS count FROM postings GROUP BY account, end_user) AS counted
WHERE holdings.account = counted.account AND holdings.end_user = counted.end_user
  AND holdings.ends_at = 9007199254740991 AND holdings.type = 'end-user';

INSERT INTO landmarks (account, end_user, transaction_id, posting)
SELECT account, end_user, transaction_id, posting FROM (
  SELECT account, end_user, transaction_id, posting,
    row_number() OVER (PARTITION BY account, end_user ORDER BY posting) AS place
  FROM postings
) WHERE place % 256 = 0;
`;

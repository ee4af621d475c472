// Up to which posting the holdings of every end user are brought. What was entered behind it may be in the holdings
// already: each end user's own row names the latest posting that its holdings count.

export const posted = `
CREATE TABLE posted (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  posting INTEGER NOT NULL CHECK (posting >= 0)
) STRICT;

INSERT INTO posted (only, posting) SELECT 1, coalesce(max(posting), 0) FROM postings;
`;

// The head of the chain over the postings of an end user, on the end user's own row, which every batch changes anyway.
// Null where none is kept: `scrip migrate --chains` computes it.

export const chainOfAnEndUser = `
ALTER TABLE holdings ADD COLUMN chain TEXT CHECK (chain IS NULL OR (length(chain) = 43 AND type = 'end-user'));
`;

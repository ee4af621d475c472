// The head of the chain over the postings of an end user, on the row that a batch locks. Null where none is kept, as for
// all end users that are there already: `scrip migrate --chains` computes it. Empty where there is no posting yet.
//
// The rows that are there have no head, so the rule is not tried on them: that would read them all while nobody writes.

export const chainOfAnEndUser = `
ALTER TABLE scrip.end_users ADD COLUMN chain text;
ALTER TABLE scrip.end_users ADD CONSTRAINT chain_is_a_head CHECK (length(chain) IN (0, 43)) NOT VALID;
`;

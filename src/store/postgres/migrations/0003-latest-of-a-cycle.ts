// Each cycle names the last transaction that touched it, so that a batch finds the latest one of an end user in the rows
// that it loads and changes anyway. `end_users.latest` is no longer kept: that row is a lock, and only read. Measured in
// batches of 40: the update of `end_users` was a sixth of what a subtraction cost the server.

export const latestOfACycle = `
ALTER TABLE scrip.cycles ADD COLUMN latest uuid;
UPDATE scrip.cycles c SET latest = e.latest FROM scrip.end_users e
WHERE e.bucket = c.bucket AND e.account = c.account AND e.end_user = c.end_user
  AND (c.ends_at > extract(epoch FROM now()) * 1000 OR (c.type = 'recurring' AND c.status = 'active'));
`;

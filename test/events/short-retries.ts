// Replaces the schedule of retries: a failed delivery is tried again in the next round of the webhook job.

export function retryDelayMs(): number {
  return 200;
}

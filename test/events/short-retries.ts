// Replaces Scrip's retry schedule, so that the next run of the webhook job retries a failed delivery.

export function retryDelayMs(): number {
  return 200;
}

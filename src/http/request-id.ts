// Request ids consist of the time of arrival, the process id and a counter. A replayed error response has the id of the
// first request, and therefore also the time of that request.

/** Ids are unique in this process; the middle part differs between processes on the same machine. */
export function requestIds(): () => string {
  const ofProcess = `-${process.pid.toString(36)}-`;
  let count = 0;
  return () => Date.now().toString(36) + ofProcess + (count++).toString(36);
}

/** When the request with this id arrived, in milliseconds since 1970. */
export function arrivalOf(requestId: string): number {
  return Number.parseInt(requestId, 36);
}

// A request ID consists of the time of arrival, the process ID and a counter, each in base 36.

/** The process ID makes request IDs unique across the processes of a machine. */
export function requestIds(): () => string {
  const ofProcess = `-${process.pid.toString(36)}-`;
  let count = 0;
  let latest = 0;
  let prefix = '';
  return () => {
    const now = Date.now();
    if (now !== latest) {
      latest = now;
      prefix = now.toString(36) + ofProcess;
    }
    return prefix + (count++).toString(36);
  };
}

/** When the request with this ID arrived, in milliseconds since 1970. */
export function arrivalOf(requestId: string): number {
  return Number.parseInt(requestId, 36);
}

// This module is loaded before each test file. After five minutes, it exits the process, which may still have a socket
// open; otherwise the whole test run would hang. Exiting right after the tests would be simpler, but would lose results
// that are still being written.

/** The slowest file takes about a minute on an idle machine. */
const FILE_MS_MAX = 300_000;

const deadline = setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(', ');
  process.stderr.write(`This test file has not ended after ${FILE_MS_MAX / 1_000} s. Still open: ${open}\n`);
  process.exit(1);
}, FILE_MS_MAX);
deadline.unref();

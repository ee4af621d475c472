// This module is loaded before each test file. It exits the process after five minutes, because an open socket could
// otherwise keep the process alive and hang the whole test run. Exiting right after the tests would be simpler, but
// would lose results that are still being written.

/** The slowest file takes about a minute on an idle machine. */
const FILE_MS_MAX = 300_000;

const deadline = setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(', ');
  process.stderr.write(`This test file has not ended after ${FILE_MS_MAX / 1_000} s. Still open: ${open}\n`);
  process.exit(1);
}, FILE_MS_MAX);
deadline.unref();

// The test runner loads this module before each test file. An open socket could hang the whole test run, so the process
// ends after five minutes. Ending the process right after the tests would lose results that are not yet written.

/** The slowest test file takes about a minute on an idle machine. */
const FILE_MS_MAX = 300_000;

const deadline = setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(', ');
  process.stderr.write(`This test file has not ended after ${FILE_MS_MAX / 1_000} s. Still open: ${open}\n`);
  process.exit(1);
}, FILE_MS_MAX);
deadline.unref();

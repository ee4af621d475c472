// The test runner loads this module before each test file. An open socket could hang the whole test run, so this module
// ends the process after five minutes. The module does not end the process right after the tests, because results that
// are not yet written would be lost.

/** The slowest test file takes about a minute on an idle machine. */
const FILE_MS_MAX = 300_000;

const deadline = setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(', ');
  process.stderr.write(`This test file has not ended after ${FILE_MS_MAX / 1_000} s. Still open: ${open}\n`);
  process.exit(1);
}, FILE_MS_MAX);
deadline.unref();

// Loaded before each test file: what a file leaves open when its tests are over would keep it, and all of the run, for
// ever. Exiting at the end of the tests would be simpler, and loses those of their results that are still on their way.

/** The longest file takes about a minute on a machine that does nothing else. */
const FILE_MS_MAX = 300_000;

const deadline = setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(', ');
  process.stderr.write(`This file has not ended after ${FILE_MS_MAX / 1_000} s. Still open: ${open}\n`);
  process.exit(1);
}, FILE_MS_MAX);
deadline.unref();

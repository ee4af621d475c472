// The folder for what all test files of one run share. A test file that is run by itself has no such folder and creates
// what it needs.

/** Its name in the environment; `npm test` sets it. */
export const RUN_FOLDER_VARIABLE = 'SCRIP_TEST_RUN_FOLDER';

export const RUN_FOLDER: string | undefined = process.env[RUN_FOLDER_VARIABLE];

/**
 * The environment of the processes that a test starts: what starting needs, and where Node keeps compiled modules,
 * since compiling them takes a quarter of a second at each start of Scrip.
 */
export function startingEnvironment(): Record<string, string> {
  const names = ['PATH', 'TMPDIR', 'SystemRoot', 'NODE_COMPILE_CACHE'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

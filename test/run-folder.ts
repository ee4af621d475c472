// The folder in which the files of one test run share what is the same for all of them. A file that is run by itself
// has no such folder, and makes for itself what it needs.

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

// The folder in which the files of one run of the tests keep what is the same for all of them. Whoever runs a file by
// itself has none, and then each file makes for itself what it needs.

/** Its name in the environment; `npm test` sets it. */
export const RUN_FOLDER_VARIABLE = 'SCRIP_TEST_RUN_FOLDER';

export const RUN_FOLDER: string | undefined = process.env[RUN_FOLDER_VARIABLE];

/**
 * What any process that a test starts may know of the environment of the tests: what starting takes, and where Node keeps
 * modules that it has compiled, since each start of Scrip compiles a quarter of a second.
 */
export function startingEnvironment(): Record<string, string> {
  const names = ['PATH', 'TMPDIR', 'SystemRoot', 'NODE_COMPILE_CACHE'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

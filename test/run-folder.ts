// The folder shared by all test files of one `npm test` run. A test file that runs on its own has no such folder.

export const RUN_FOLDER_VARIABLE = 'SCRIP_TEST_RUN_FOLDER';

export const RUN_FOLDER: string | undefined = process.env[RUN_FOLDER_VARIABLE];

/** Without the Node.js compile cache, each start of Scrip spends a quarter of a second compiling modules. */
export function startingEnvironment(): Record<string, string> {
  const names = ['PATH', 'TMPDIR', 'SystemRoot', 'NODE_COMPILE_CACHE'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

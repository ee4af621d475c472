// Replaces a module of Scrip with a module of a test, for controls that must break a process. The files that call
// `substitute` are loaded before all other modules of the process and its threads (`NODE_OPTIONS=--import=…`).

import { registerHooks } from 'node:module';

export interface Substitution {
  /** The end of the path of the importing file. Other files get the original module. */
  readonly importer: string;
  /** The end of the replaced module's specifier in the importing file, such as `/writer.ts`. */
  readonly specifier: string;
  /** The module that the importing file gets instead. */
  readonly replacement: URL;
}

export function substitute({ importer, specifier, replacement }: Substitution): void {
  registerHooks({
    resolve: (asked, context, next) =>
      asked.endsWith(specifier) && context.parentURL?.endsWith(importer)
        ? { url: replacement.href, shortCircuit: true }
        : next(asked, context),
  });
}

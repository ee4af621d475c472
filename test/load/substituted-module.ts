// Replaces a module of Scrip with another module, so that a control can break a server on purpose. A file that calls
// `substitute` must be loaded before all other modules, in every thread of the server (`NODE_OPTIONS=--import=…`).

import { registerHooks } from 'node:module';

export interface Substitution {
  /** How the path of the importing file ends. All other files get the original module. */
  readonly importer: string;
  /** How the import specifier of the replaced module ends, such as `/writer.ts`. */
  readonly specifier: string;
  /** The module that the importing file gets instead of the original. */
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

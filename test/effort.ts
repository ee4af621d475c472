// The tests have a short and a long form. `npm test` runs the short form, which tests every behavior in a few minutes.
// `npm run test:long` runs the long form, which repeats random and expensive tests more often, and runs the store
// contract on every variant of the stores.

import { test } from 'node:test';

export const IS_LONG = process.env.TESTS === 'long';

/**
 * Declares a control: a test that breaks Scrip on purpose and proves that another test notices. Controls that take long
 * run only in the long form.
 */
export const control = (IS_LONG ? test : () => {}) as typeof test;

/**
 * Returns `short` in the short form of the tests and `long` in the long form. The arguments are, for example, numbers
 * of repetitions or lists of stores.
 */
export function effort<Value>(short: Value, long: Value): Value {
  return IS_LONG ? long : short;
}

// The tests have two forms. `npm test` runs the short form, which executes every behaviour in minutes. `npm run
// test:long` repeats random and expensive tests more often, and runs the store contract on every variant of the stores.

export const IS_LONG = process.env.TESTS === 'long';

/** Returns a number of repetitions, or another measure of effort, for the current form. */
export function effort<Value>(short: Value, long: Value): Value {
  return IS_LONG ? long : short;
}

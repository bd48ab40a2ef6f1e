/*
 * A mutant is a small fault put into the code on purpose. At least one of its tests must fail because of it.
 *
 * To add one, append an entry to the list of its part, <part>-mutants.ts. Then run it:
 *
 *   node scripts/mutants.mjs <part of its name>
 */

/** A way to break the code, and the tests that must notice. */
export interface Mutant {
  /** What the broken code does wrong. No two mutants have the same name. */
  name: string
  /** The source to break, from the root of the repository. */
  file: string
  /** Every occurrence of a text is replaced, or what the pattern matches. There must be one. */
  find: string | RegExp
  replace: string
  /** The test files that must notice; best exactly one, and a fast one. They must pass without the mutant. */
  tests: readonly string[]
  /** Part of the full name of the test that must fail: only the tests with it in their names run. Without it, all run. */
  by?: string
}

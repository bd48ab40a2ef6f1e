/** A way to break the code, and the tests that must notice. */
export interface Mutant {
  name: string
  file: string
  find: string | RegExp
  replace: string
  tests: readonly string[]
}

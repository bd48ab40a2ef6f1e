// @ts-check

/** What was asked for cannot be done; a line for whoever asked, and no stack. */
export class Refusal extends Error {}

/** Ends the process with the line of a refusal. Anything else is a fault of the bench's, and is thrown on. */
export function endRefused(error) {
  if (!(error instanceof Refusal)) throw error
  process.stderr.write(`${error.message}\nsee --help\n`)
  process.exit(2)
}

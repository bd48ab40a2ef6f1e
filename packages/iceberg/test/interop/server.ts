/**
 * The address of a server that `npm run test:interop` has started. Without one the tests that need it are skipped, and
 * that is said aloud.
 */
export function interopServer(variable: string, what: string): string | undefined {
  const address = process.env[variable]
  if (address === undefined || address === '') {
    console.warn(`!! SKIPPED: ${what} is not tested here (${variable} is not set). npm run test:interop does it.`)
    return undefined
  }
  return address
}

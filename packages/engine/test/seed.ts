/**
 * The seed of random tests: FENCEPOST_SEED, or that of the day, so that all runs of one day play the same and a failure
 * does not vanish when a run is repeated. The seed of 17 November 2026 is 20261117; days are those of UTC.
 */
export function seedOfTheDay(): number {
  const seed = process.env['FENCEPOST_SEED'] ?? new Date().toISOString().slice(0, 10).replaceAll('-', '')
  return Number(seed)
}

import type { Engine } from '../engine.ts'

const inUse = new WeakMap<Engine, Set<string>>()

/**
 * An id for one call of work(): the engine's own for the first, and that with a number for those beside it. Each has a row
 * of its own in the registry, which says what exactly it serves and goes when it stops.
 */
export function takeWorkerId(engine: Engine): { workerId: string; giveBack: () => void } {
  const taken = inUse.get(engine) ?? new Set<string>()
  inUse.set(engine, taken)
  let workerId = engine.workerId
  for (let nth = 2; taken.has(workerId); nth += 1) workerId = `${engine.workerId}-${nth}`
  taken.add(workerId)
  return { workerId, giveBack: () => void taken.delete(workerId) }
}

import { CommandError } from '../failure.ts'
import type { OpenedDatabase } from './database.ts'

const lookMs = 1_000
/** So often in a row it must be found gone. */
const maxMisses = 2

/** Fires with an error that says so when the embedded Postgres has ended by itself. */
export function embeddedEnded({ embedded, name }: OpenedDatabase): AbortSignal {
  const controller = new AbortController()
  if (embedded === undefined) return controller.signal
  let misses = 0
  const timer = setInterval(() => {
    misses = isRunning(embedded) ? 0 : misses + 1
    if (misses < maxMisses) return
    clearInterval(timer)
    const message = `The ${name} has ended. Its log, ${embedded.log}, says why. Start again: no job is lost.`
    controller.abort(new CommandError('embedded_ended', 'unavailable', message))
  }, lookMs)
  timer.unref()
  return controller.signal
}

/** Not being able to look is no sign that it has ended. */
function isRunning(embedded: { isRunning(): boolean }): boolean {
  try {
    return embedded.isRunning()
  } catch {
    return true
  }
}

import { CommandError } from '../failure.ts'
import type { OpenedDatabase } from './database.ts'

const lookMs = 1_000

/** Fires with an error that says so when the embedded Postgres has ended by itself. */
export function embeddedEnded({ embedded, name }: OpenedDatabase): AbortSignal {
  const controller = new AbortController()
  if (embedded === undefined) return controller.signal
  const timer = setInterval(() => {
    if (embedded.isRunning()) return
    clearInterval(timer)
    const message = `The ${name} has ended. Its log, ${embedded.log}, says why. Start again: no job is lost.`
    controller.abort(new CommandError('embedded_ended', 'unavailable', message))
  }, lookMs)
  timer.unref()
  return controller.signal
}

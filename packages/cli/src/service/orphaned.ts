const lookMs = 250

/**
 * Fires when the shell that npm runs this process in has gone. npm passes SIGTERM on to that shell, many shells end
 * without passing it on, and `npm start` would leave everything running behind it.
 */
export function orphaned(env: Readonly<Record<string, string | undefined>>): AbortSignal {
  const controller = new AbortController()
  if (env['npm_lifecycle_event'] === undefined) return controller.signal
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    controller.abort('SIGTERM')
  }, lookMs)
  timer.unref()
  return controller.signal
}

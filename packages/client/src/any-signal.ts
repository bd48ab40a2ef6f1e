/** A signal that fires with the first of these. Node 20 has AbortSignal.any(), not every browser does. */
export function anySignal(signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter((signal) => signal !== undefined)
  if (given.length < 2) return given[0]
  const controller = new AbortController()
  for (const signal of given) {
    const abort = () => controller.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true, signal: controller.signal })
  }
  return controller.signal
}

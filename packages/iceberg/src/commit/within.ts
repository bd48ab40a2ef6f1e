/** Waits for the work until the signal is aborted; work that does not heed the signal goes on unobserved. */
export async function within<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  let stop: () => void = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work(signal), aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

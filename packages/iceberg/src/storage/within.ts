/** Waits for the work until the signal is aborted; work that does not heed the signal goes on unobserved. */
export async function within<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  if (signal === undefined) return work()
  signal.throwIfAborted()
  let stop: () => void = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    return await Promise.race([work(), aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** The items, until the signal is aborted: a source that hangs is told to close, and not waited for. */
export async function* eachWithin<T>(signal: AbortSignal | undefined, items: AsyncIterable<T>): AsyncGenerator<T> {
  const source = items[Symbol.asyncIterator]()
  let ended = false
  try {
    for (;;) {
      const next = await within(signal, () => source.next())
      ended = next.done === true
      if (next.done === true) return
      yield next.value
    }
  } finally {
    const closed = ended ? undefined : source.return?.()
    if (signal?.aborted === true) closed?.catch(() => {})
    else await closed
  }
}

/** One message of a text/event-stream. */
export interface StreamMessage {
  id: string | undefined
  event: string
  data: string
}

/** Thrown when nothing has come over a stream for so long that its connection must be dead. */
export class StreamIdleError extends Error {
  constructor(idleMs: number) {
    super(`Nothing has come for ${idleMs} ms, not even a ping.`)
    this.name = 'StreamIdleError'
  }
}

/**
 * Reads the messages of a text/event-stream as they arrive; ends when the connection does. A server sends a ping now and
 * then, so silence for `idleMs` means that the connection is dead.
 */
export async function* readEventStream(
  body: ReadableStream<Uint8Array>,
  idleMs: number,
): AsyncGenerator<StreamMessage, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let pending = ''
  try {
    for (;;) {
      const { done, value } = await readWithin(reader, idleMs)
      if (done) return // what is unfinished was cut off in the middle: it comes again after resuming
      pending += decoder.decode(value, { stream: true })
      const blocks = pending.split(/\r\n\r\n|\n\n|\r\r/)
      pending = blocks.pop() ?? ''
      for (const block of blocks) {
        const message = parseBlock(block)
        if (message !== undefined) yield message
      }
    }
  } finally {
    await reader.cancel().catch(() => {}) // it may be broken already
  }
}

async function readWithin(reader: ReadableStreamDefaultReader<Uint8Array>, idleMs: number) {
  let timer: ReturnType<typeof setTimeout> | undefined
  const idle = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StreamIdleError(idleMs)), idleMs)
  })
  try {
    return await Promise.race([reader.read(), idle])
  } finally {
    clearTimeout(timer)
  }
}

function parseBlock(block: string): StreamMessage | undefined {
  let id: string | undefined
  let event = 'message'
  const data: string[] = []
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(':')
    if (colon === 0) continue // a comment: the ping
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'id') id = value
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
  return data.length === 0 ? undefined : { id, event, data: data.join('\n') }
}

/** One message of a text/event-stream. */
export interface StreamMessage {
  id: string | undefined
  event: string
  data: string
}

/** Reads the messages of a text/event-stream as they arrive; ends when the connection does. */
export async function* readEventStream(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamMessage, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let pending = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
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

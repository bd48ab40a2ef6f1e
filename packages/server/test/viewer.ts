import { request, type ClientRequest, type IncomingMessage } from 'node:http'

/** A message of a stream, as it came. */
export interface Received {
  id: string | undefined
  event: string
  data: { id: string; job_id: string; event: string; fields: Record<string, unknown> | null; reason?: string }
  at: number
}

/** A viewer of a text/event-stream, written without our client. */
export interface Viewer {
  received: Received[]
  /** Resolves when it has so many messages, or the stream has ended. */
  until(count: number): Promise<Received[]>
  /** Resolves when the stream has ended. */
  ended: Promise<void>
  pings(): number
  leave(): void
}

/** Opens a stream, and resolves when its headers are there. */
export async function view(url: string, path: string, headers: Record<string, string> = {}): Promise<Viewer> {
  const received: Received[] = []
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const one of waiting) one()
  }
  let pings = 0
  let over = false
  const { message, sent } = await connect(`${url}${path}`, { accept: 'text/event-stream', ...headers })
  let text = ''
  const ended = new Promise<void>((resolve) => {
    message.on('data', (some: Buffer) => {
      text += some.toString()
      const blocks = text.split('\n\n')
      text = blocks.pop() ?? ''
      for (const block of blocks) {
        const one = parse(block)
        if (one !== undefined) received.push(one)
        else if (block.startsWith(':')) pings += 1
      }
      wake()
    })
    const end = () => {
      over = true
      wake()
      resolve()
    }
    message.on('end', end)
    message.on('error', end)
    message.on('close', end)
  })
  return {
    received,
    ended,
    pings: () => pings,
    leave: () => sent.destroy(),
    until: async (count) => {
      while (received.length < count && !over) {
        await new Promise<void>((resolve) => {
          const one = () => {
            waiting.delete(one)
            resolve()
          }
          waiting.add(one)
        })
      }
      return received
    },
  }
}

async function connect(
  url: string,
  headers: Record<string, string>,
): Promise<{ message: IncomingMessage; sent: ClientRequest }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers, agent: false }, (message) => {
      if (message.statusCode === 200) resolve({ message, sent })
      else reject(new Error(`${url} answered ${message.statusCode}`))
    })
    sent.on('error', reject)
    sent.end()
  })
}

function parse(block: string): Received | undefined {
  const field = (name: string) =>
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2)
  const data = field('data')
  if (data === undefined) return undefined
  return { id: field('id'), event: field('event') ?? '', data: JSON.parse(data) as Received['data'], at: Date.now() }
}

import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/**
 * A wire to Postgres that can lose an answer: what was sent is carried out and committed, but the client sees only that
 * the connection broke. Postgres sends nothing before a statement is done, so the first byte that comes back says that.
 *
 * It can also fall silent, as when a host vanishes: nothing passes any more, and nobody is told.
 */
export class LosingProxy {
  readonly url: string
  readonly #close: () => Promise<void>
  readonly #pairs: Set<Socket>
  readonly #silenced = new Set<Socket>()
  #losing = false
  #deaf = false

  private constructor(url: string, pairs: Set<Socket>, close: () => Promise<void>) {
    this.url = url
    this.#pairs = pairs
    this.#close = close
  }

  static async open(database: string): Promise<LosingProxy> {
    const target = new URL(database)
    const pairs = new Set<Socket>()
    const server = createServer((client) => {
      const upstream = connect(Number(target.port || 5432), target.hostname)
      pairs.add(client).add(upstream)
      if (proxy.#deaf) proxy.#silenced.add(client)
      const end = () => {
        client.destroy()
        upstream.destroy()
      }
      for (const socket of [client, upstream]) socket.on('error', end).on('close', end)
      client.on('data', (bytes) => {
        if (!proxy.#silenced.has(client)) upstream.write(bytes)
      })
      upstream.on('data', (bytes) => {
        if (proxy.#silenced.has(client)) return
        if (proxy.#losing) {
          proxy.#losing = false
          end()
        } else {
          client.write(bytes)
        }
      })
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const url = new URL(database)
    url.hostname = '127.0.0.1'
    url.port = String((server.address() as AddressInfo).port)
    const proxy = new LosingProxy(url.href, pairs, () => new Promise((resolve) => void server.close(() => resolve())))
    return proxy
  }

  /** Loses the next answer that comes back, on whichever connection. */
  loseNextAnswer(): void {
    this.#losing = true
  }

  /** Nothing passes over the connections that are there; new ones work, unless it is silent for them, too. */
  fallSilent(forWhom: 'those there' | 'all' = 'those there'): void {
    for (const socket of this.#pairs) this.#silenced.add(socket)
    this.#deaf = forWhom === 'all'
  }

  async close(): Promise<void> {
    for (const socket of this.#pairs) socket.destroy()
    await this.#close()
  }
}

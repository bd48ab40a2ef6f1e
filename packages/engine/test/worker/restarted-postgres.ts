import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect } from 'vitest'
import { openEmbeddedPostgres, type EmbeddedPostgres } from '../../src/index.ts'
import { isAlive } from './worker-bed.ts'
import { freePort } from '../free-ports.ts'

const stops = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/** A Postgres that can be stopped and started again at the same address. */
export class RestartedPostgres {
  readonly #directory = join(tmpdir(), `fencepost-restarted-${randomBytes(6).toString('hex')}`)
  readonly #uses: EmbeddedPostgres[] = []
  readonly #settings: Record<string, string | number>

  private constructor(settings: Record<string, string | number>) {
    this.#settings = settings
  }

  static async open(settings: Record<string, string | number> = {}): Promise<RestartedPostgres> {
    const postgres = new RestartedPostgres({ port: await freePort(), ...settings })
    await postgres.start()
    return postgres
  }

  get url(): string {
    return this.#uses[0]?.url ?? ''
  }

  async start(): Promise<void> {
    this.#uses.push(await openEmbeddedPostgres({ directory: this.#directory, settings: this.#settings }))
  }

  async stop(mode: keyof typeof stops): Promise<void> {
    const pid = Number(readFileSync(join(this.#directory, 'data/postmaster.pid'), 'utf8').split('\n')[0])
    process.kill(pid, stops[mode])
    await expect.poll(() => isAlive(pid), { timeout: 30_000, interval: 20 }).toBe(false)
  }

  async close(): Promise<void> {
    for (const use of this.#uses) await use.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  async query<Row>(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url })
    await client.connect()
    try {
      return (await client.query(text)).rows as Row[]
    } finally {
      await client.end()
    }
  }
}

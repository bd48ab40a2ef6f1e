// @ts-check
import { setTimeout as pause } from 'node:timers/promises'
import { AdapterProcess } from './adapter-process.mjs'
import { now } from './clock.mjs'
import { connect, withClient } from './postgres.mjs'
import { OutOfTime } from './within.mjs'

const lookEveryMs = 2
const stuckAfterMs = 60_000

/** One system under one workload, once: a fresh database, and whatever processes the workload starts in it. */
export class Cell {
  /** @type {AdapterProcess[]} */
  #processes = []
  /** Set when its time is over. @type {OutOfTime | undefined} */
  #late

  /** @param {{ postgres: any, system: import('./systems.mjs').System, sizes: any, say: (text: string) => void }} given */
  constructor({ postgres, system, sizes, say }) {
    this.postgres = postgres
    this.system = system
    this.sizes = sizes
    this.say = say
    this.url = ''
  }

  get database() {
    return `bench_${this.system.name}`
  }

  template(name) {
    return `${this.database}_${name}`
  }

  /** A database that begins as this template of the system's. */
  async begin(template = 'empty') {
    this.url = await this.postgres.recreate(this.database, this.template(template))
  }

  /** How many rows this system gets of a workload's. */
  rows(count) {
    return Math.round(count * this.system.scale)
  }

  async start(options = {}) {
    this.#checkTime()
    const { adapter, options: always } = this.system
    const all = { url: this.url, ...options, options: { ...always, ...options.options } }
    const started = new AdapterProcess(adapter, all)
    this.#processes.push(started)
    await started.ready
    return started
  }

  /** Runs one verb in a process of its own. */
  async once(verb, args = {}, options = {}) {
    const adapter = await this.start(options)
    const value = await adapter.call(verb, args)
    await adapter.end()
    return value
  }

  async settle() {
    await this.postgres.settle(this.url)
  }

  async query(text) {
    this.#checkTime()
    return withClient(this.url, async (client) => (await client.query(text)).rows)
  }

  async left() {
    return (await this.query(this.system.left))[0].left
  }

  /**
   * Works off what is there with one worker process. The clock runs from the order to work to the moment the database
   * was first seen without an unfinished job; so does the count of processor time.
   */
  async drain(count, { profile = 'drain', handler = 'noop' } = {}) {
    const worker = await this.start()
    const client = await connect(this.url)
    try {
      await worker.call('get_ready', { profile })
      const workerCpuBefore = await worker.call('cpu_ms')
      const walBefore = await this.postgres.walPosition()
      const cpuBefore = this.postgres.cpuMs()
      const began = now()
      const working = worker.call('work', { profile, handler })
      await worker.call('handled', { count })
      await working
      const ended = await this.#emptied(client)
      const workerCpuMs = (await worker.call('cpu_ms')) - workerCpuBefore
      const serverCpuMs = cpuBefore === undefined ? undefined : this.postgres.cpuMs() - cpuBefore
      const walBytes = (await this.postgres.walPosition()) - walBefore
      const handled = await worker.call('handled', { count: 0 })
      if (handled !== count) throw new Error(`${this.system.name} ran ${handled} handlers for ${count} jobs.`)
      const ms = ended - began
      return { ms, perSecond: (count / ms) * 1000, workerCpuMs, serverCpuMs, walBytesPerJob: walBytes / count }
    } finally {
      await client.end()
      await worker.end()
    }
  }

  async #emptied(client) {
    const since = now()
    for (;;) {
      this.#checkTime()
      const askedAt = now()
      const { rows } = await client.query(this.system.anyLeft)
      if (!rows[0].any_left) return askedAt
      if (askedAt - since > stuckAfterMs) throw new Error(`${this.system.name} did not settle all it ran.`)
      await pause(lookEveryMs)
    }
  }

  /**
   * The rate at which the first `count` of many jobs are settled. Read once, when so many handlers have run: what has
   * been settled in that snapshot, by the time that had passed.
   */
  async drainSome(count) {
    const worker = await this.start()
    const client = await connect(this.url)
    try {
      await worker.call('get_ready', { profile: 'drain' })
      const before = (await client.query(this.system.left)).rows[0].left
      const began = now()
      const working = worker.call('work', { profile: 'drain', handler: 'noop' })
      await worker.call('handled', { count })
      const askedAt = now()
      const { rows } = await client.query(this.system.left)
      await working
      return { perSecond: ((before - rows[0].left) / (askedAt - began)) * 1000 }
    } finally {
      await client.end()
      await worker.kill() // it holds jobs of a backlog that nobody wants to see the end of
    }
  }

  /** Its time is over: whatever it waits for comes to nothing. */
  expire(seconds) {
    this.#late = new OutOfTime(seconds)
    for (const one of this.#processes) one.signal('SIGKILL')
  }

  /** Why it ended: its own reason, or that it was out of time, of which the former is then only a consequence. */
  reasonOf(error) {
    return this.#late ?? error
  }

  #checkTime() {
    if (this.#late !== undefined) throw this.#late
  }

  /** Ends what is still running and drops the database. */
  async close() {
    await Promise.all(this.#processes.map((one) => one.kill()))
    await this.postgres.drop(this.database)
  }
}

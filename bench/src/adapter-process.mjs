// @ts-check
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const serve = fileURLToPath(new URL('../adapters/serve.mjs', import.meta.url))

/** Every adapter process that has not ended. @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set()

/** Ends every process that is left, also one that is stopped. */
export function killAdapters() {
  for (const child of running) child.kill('SIGKILL')
}

/** One process with one system in it. */
export class AdapterProcess {
  #child
  #nextId = 1
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  #waiting = new Map()
  #ended
  #gone = false
  #stderr = ''

  constructor(name, { url, poolSize = 10, options = {} }) {
    this.name = name
    /** Resolves when it takes calls. */
    this.ready = new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }))
    this.ready.catch(() => {}) // seen by whoever waits for it
    const argument = JSON.stringify({ name, url, poolSize, options })
    this.#child = spawn(process.execPath, [...nodeOptions(name), serve, argument], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_ENV: 'production' },
    })
    running.add(this.#child)
    this.#child.stderr.setEncoding('utf8').on('data', (text) => (this.#stderr = (this.#stderr + text).slice(-4000)))
    this.#child.stdin.on('error', () => {})
    this.#ended = new Promise((resolve) => {
      this.#child.on('close', (code, signal) => {
        running.delete(this.#child)
        this.#gone = true
        this.#failAll(`${name} ended (${signal ?? code}). ${this.#stderr}`)
        resolve(undefined)
      })
    })
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#heard(line))
  }

  async call(verb, args = {}) {
    if (this.#gone) throw new Error(`${this.name} has ended. ${this.#stderr}`)
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.stdin.write(`${JSON.stringify({ id, verb, args })}\n`)
    })
  }

  signal(signal) {
    this.#child.kill(signal)
  }

  async kill() {
    this.#child.kill('SIGKILL')
    await this.#ended
  }

  /** Lets it close its connections; whatever does not end in time is ended. */
  async end() {
    await Promise.race([
      this.call('close').catch(() => {}),
      new Promise((resolve) => setTimeout(resolve, 3000).unref()),
    ])
    this.#child.stdin.end()
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 2000)
    await this.#ended
    clearTimeout(late)
  }

  #heard(line) {
    let message
    try {
      message = JSON.parse(line)
    } catch {
      return // a library that prints
    }
    const id = message.ready ? 0 : message.id
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (message.error === undefined) waiting?.resolve(message.value)
    else waiting?.reject(new Error(`${this.name}: ${message.error}`))
  }

  #failAll(why) {
    for (const { reject } of this.#waiting.values()) reject(new Error(why))
    this.#waiting.clear()
  }
}

// BENCH_CPU_PROF=<folder> profiles every adapter process of ours into it.
function nodeOptions(name) {
  const folder = process.env['BENCH_CPU_PROF']
  return folder !== undefined && name === 'fencepost' ? ['--cpu-prof', `--cpu-prof-dir=${folder}`] : []
}

import { fork, type ChildProcess } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AbortReason } from '../../attempt/attempt.ts'
import type { Outcome } from '../../attempt/settle.ts'
import { FencepostError } from '../../errors.ts'
import type { Claimed } from '../../lifecycle/claim.ts'
import type { Logger } from '../../logger.ts'
import { keptStderrLength, outcomeOfEnding, type Ending } from './ending.ts'
import { marked, unmarked, type HandlerSettings, type ToHandler, type ToSupervisor } from './messages.ts'
import { killGroup, ownGroup } from './process-group.ts'

const startTimeoutMs = 30_000
/** How long to wait, once a process has ended, for what it had sent before: an outcome, its last words. */
const lastWordsMs = 250
/** How long a process that is not needed any more has to close its connections. */
const endMs = 250

interface Running {
  attemptId: string
  done: (outcome: Outcome) => void
  onFenceLost: () => void
  /** What a rejection has made of it that nobody handled. */
  rejected?: Outcome
}

/** One handler process, as its supervisor sees it. It runs one attempt at a time. */
export class HandlerProcess {
  readonly maxMemoryMb: number | undefined
  readonly #child: ChildProcess
  readonly #logger: Logger
  #stderr = ''
  #running: Running | undefined
  #opened: { resolve: () => void; reject: (error: FencepostError) => void } | undefined
  #ending: Ending | undefined
  /** Resolves when the process is gone, and everything that it had sent has been heard. */
  readonly gone: Promise<void>

  private constructor(child: ChildProcess, maxMemoryMb: number | undefined, logger: Logger) {
    this.#child = child
    this.maxMemoryMb = maxMemoryMb
    this.#logger = logger
    child.on('message', (message) => {
      const ours = unmarked<ToSupervisor>(message)
      if (ours !== undefined) this.#hear(ours)
    })
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-keptStderrLength)
      process.stderr.write(text)
    })
    this.gone = endOf(child).then(({ code, signal }) => this.#ended(code, signal))
  }

  /** Starts one and has it import the operations. Throws when it cannot be used. */
  static async start(
    settings: HandlerSettings,
    maxMemoryMb: number | undefined,
    logger: Logger,
    onStarted: (starting: HandlerProcess) => void,
  ): Promise<HandlerProcess> {
    const started = new HandlerProcess(forkChild(maxMemoryMb), maxMemoryMb, logger)
    onStarted(started)
    await started.#open(settings)
    return started
  }

  get isGone(): boolean {
    return this.#ending !== undefined
  }

  /** Runs the attempt's handler. If the process ends meanwhile, by whatever cause, that is the outcome. */
  async run(claimed: Claimed, onFenceLost: () => void): Promise<Outcome> {
    this.#stderr = ''
    return new Promise((done) => {
      if (this.#ending !== undefined) return done(outcomeOfEnding(this.#ending))
      this.#running = { attemptId: claimed.attemptId, done, onFenceLost }
      return this.#say({ kind: 'run', claimed })
    })
  }

  abort(attemptId: string, reason: AbortReason): void {
    this.#say({ kind: 'abort', attemptId, reason })
  }

  /** Ends it whatever it is doing, with everything that it has started; resolves when it is gone. */
  async kill(): Promise<void> {
    this.killNow()
    await this.gone
  }

  /** The same, for a supervisor that cannot wait. */
  killNow(): void {
    const { pid } = this.#child
    if (pid !== undefined && this.#ending === undefined) killGroup(pid)
  }

  /** Ends one that runs nothing: it closes its connections first. */
  async end(): Promise<void> {
    this.#say({ kind: 'end' })
    const timer = setTimeout(() => this.killNow(), endMs)
    await this.gone
    clearTimeout(timer)
  }

  async #open(settings: HandlerSettings): Promise<void> {
    const timer = setTimeout(() => this.killNow(), startTimeoutMs)
    try {
      await new Promise<void>((resolve, reject) => {
        this.#opened = { resolve, reject }
        this.#say({ kind: 'open', settings })
      })
    } catch (error) {
      this.killNow()
      throw error
    } finally {
      clearTimeout(timer)
      this.#opened = undefined
    }
  }

  #say(message: ToHandler): void {
    // A message that cannot be sent was for a process that has ended, and is heard of as such.
    if (this.#child.connected) this.#child.send(marked(message), () => {})
  }

  #hear(message: ToSupervisor): void {
    switch (message.kind) {
      case 'ready':
        this.#opened?.resolve()
        break
      case 'unusable':
        this.#opened?.reject(unusable(message.why))
        break
      case 'outcome':
        // One that is being killed is done when it is gone.
        if (this.#running?.attemptId === message.attemptId && this.#running.rejected === undefined) {
          this.#done(message.outcome)
        }
        break
      case 'rejected':
        if (this.#running?.attemptId === message.attemptId) this.#rejected(this.#running, message.outcome)
        break
      case 'fence_lost':
        if (this.#running?.attemptId === message.attemptId) this.#running.onFenceLost()
        break
      case 'log':
        this.#logger[message.level](message.fields, message.message)
        break
    }
  }

  #ended(code: number | null, signal: NodeJS.Signals | null): void {
    this.#ending = { code, signal, stderr: this.#stderr, maxMemoryMb: this.maxMemoryMb }
    const outcome = outcomeOfEnding(this.#ending)
    if (outcome.kind === 'failed') this.#opened?.reject(unusable(outcome.error))
    this.#done(this.#running?.rejected ?? outcome)
  }

  // The attempt is settled when the process is gone: until then its handler may be at work.
  #rejected(running: Running, outcome: Outcome): void {
    running.rejected ??= outcome
    this.killNow()
  }

  #done(outcome: Outcome): void {
    const running = this.#running
    this.#running = undefined
    running?.done(outcome)
  }
}

function forkChild(maxMemoryMb: number | undefined): ChildProcess {
  const main = new URL(`./handler-main${extname(import.meta.url)}`, import.meta.url)
  // Loaders that the operations may need are kept; a debugger's port can be opened only once.
  const execArgv = process.execArgv.filter((arg) => !arg.startsWith('--inspect'))
  if (maxMemoryMb !== undefined) execArgv.push(`--max-old-space-size=${maxMemoryMb}`)
  return fork(fileURLToPath(main), [String(process.pid)], {
    execArgv,
    serialization: 'advanced',
    detached: ownGroup,
    stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
  })
}

/** How the child ended, when the rest of what it said has arrived too, or is not coming. */
async function endOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  const rest = Promise.all([
    new Promise((resolve) => child.once('disconnect', resolve)),
    new Promise((resolve) => child.stderr?.once('close', resolve) ?? resolve(undefined)),
  ])
  const end = await new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
    child.on('error', () => {
      if (child.pid === undefined) resolve({ code: null, signal: null }) // it never began
    })
  })
  if (ownGroup && child.pid !== undefined) killGroup(child.pid) // what it had started, and may still be at work
  await Promise.race([rest, new Promise((resolve) => setTimeout(resolve, lastWordsMs))])
  return end
}

function unusable(why: string): FencepostError {
  return new FencepostError(
    'operations_module_invalid',
    `A handler process could not be started with the operationsModule: ${why}. ` +
      'It must be an ES module that exports an array named operations, with all that are isolated, and opens no engine.',
  )
}

import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Attempt } from '../../attempt/attempt.ts'
import type { Context } from '../../context.ts'
import { Database } from '../../database/database.ts'
import type { Logger } from '../../logger.ts'
import type { Operation } from '../../operation.ts'
import { createTelemetry } from '../../telemetry.ts'
import { Wake } from '../../wake.ts'
import { executeHere, watchRejections } from '../in-process.ts'
import { postgresTransport } from '../notify.ts'
import { marked, unmarked, type HandlerSettings, type ToHandler, type ToSupervisor } from './messages.ts'
import { killGroup } from './process-group.ts'

// A handler process: imports the operations, runs one attempt after another, and says what each came to. It never
// settles. It ends with its supervisor, whatever its handler is doing.

const supervisor = Number(process.argv[2])
let context: Context | undefined
let running: Attempt | undefined
let graceMs = 0

process.on('message', (message) => {
  const ours = unmarked<ToHandler>(message)
  if (ours !== undefined) void hear(ours)
})
process.on('disconnect', () => killGroup(process.pid))
// They often go to every process of a service. What is to be done about them is the supervisor's to say.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
watchRejections()

async function hear(message: ToHandler): Promise<void> {
  switch (message.kind) {
    case 'open':
      return open(message.settings)
    case 'run':
      if (context !== undefined) await run(context, new Attempt(context, message.claimed))
      return undefined
    case 'abort':
      if (running?.attemptId === message.attemptId) running.abort(message.reason)
      return undefined
    case 'end':
      await context?.database.close()
      return process.exit(0) // what a handler left behind must not keep it alive
  }
}

async function open(settings: HandlerSettings): Promise<void> {
  try {
    await startWatchdog()
    const operations = await loadOperations(settings)
    graceMs = settings.graceMs
    context = contextOf(settings, operations)
    say({ kind: 'ready' })
  } catch (error) {
    say({ kind: 'unusable', why: error instanceof Error ? error.message : String(error) })
  }
}

async function startWatchdog(): Promise<void> {
  const address = new URL(`./watchdog${extname(import.meta.url)}`, import.meta.url)
  const watchdog = new Worker(address, { workerData: supervisor })
  await once(watchdog, 'online')
  watchdog.unref()
}

async function loadOperations({ operationsModule, required }: HandlerSettings): Promise<Map<string, Operation>> {
  const { operations } = (await import(operationsModule)) as { operations?: readonly Operation[] }
  if (!Array.isArray(operations)) throw new Error('it exports no array named operations')
  const byName = new Map((operations as readonly Operation[]).map((operation) => [operation.name, operation]))
  const missing = required.filter((name) => !byName.has(name))
  if (missing.length > 0) throw new Error(`its operations lack ${missing.join(', ')}`)
  return byName
}

/** As the supervisor's, over connections of its own, which are made when a handler first writes. */
function contextOf(settings: HandlerSettings, operations: Map<string, Operation>): Context {
  const logger = loggerOfSupervisor()
  const database = new Database({
    ...settings,
    onConnectionError: (error) => logger.warn({ err: error }, 'connection_lost'),
  })
  return {
    database,
    url: settings.url,
    operations,
    limits: settings.limits,
    logger,
    telemetry: createTelemetry(),
    wake: new Wake(postgresTransport(database, settings.url, logger), logger, 0),
    migrates: false,
    durableClaims: true, // it claims nothing
    handlerProcess: { ...settings },
  }
}

async function run(context: Context, attempt: Attempt): Promise<void> {
  const { attemptId } = attempt
  running = attempt
  attempt.signal.addEventListener('abort', () => {
    if (attempt.abortReason === 'fence_lost') say({ kind: 'fence_lost', attemptId })
  })
  const outcome = await executeHere(context, attempt, {
    graceMs,
    // The supervisor kills this process: nothing else ends what the handler has forgotten.
    onRejected: (outcome) => say({ kind: 'rejected', attemptId, outcome }),
  })
  running = undefined
  say({ kind: 'outcome', attemptId, outcome })
}

function loggerOfSupervisor(): Logger {
  const log = (level: 'info' | 'warn' | 'error') => (fields: Record<string, unknown>, message: string) =>
    say({ kind: 'log', level, fields, message })
  return { info: log('info'), warn: log('warn'), error: log('error') }
}

// Without a supervisor there is nobody to tell, and this process is about to end.
function say(message: ToSupervisor): void {
  process.send?.(marked(message), undefined, undefined, () => {})
}

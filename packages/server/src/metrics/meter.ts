import type { DrainLevel } from '@fencepost/client'
import type { Depth, Engine, Logger } from '@fencepost/engine'
import { withLabels } from './depth.ts'
import { Histogram } from './histogram.ts'
import { ProcessMeter } from './process.ts'
import { QueueLabels } from './queue-labels.ts'
import { Settled } from './settled.ts'
import { metricsText, type Sample } from './text.ts'

/*
 * The numbers of /metrics are read in the background, so that a scrape costs the database nothing. Counting the
 * unfinished jobs takes longer the more there are; it is given a fiftieth of the time at most, so with a million jobs
 * the depth is some seconds older than the rest. `fencepost_metrics_age_seconds` says how old. When nobody has scraped
 * for a while, nothing is read.
 */

const idleAfterMs = 600_000
const restPerCount = 50
const firstLookMs = 2_000
const durationBounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const drainLevels: readonly DrainLevel[] = ['off', 'submissions', 'all']

export interface MeterOptions {
  engine: Engine
  metricsMs: number
  logger: Logger
  streams: () => number
  more: readonly (() => string)[]
}

export class Meter {
  readonly #options: MeterOptions
  readonly #settled: Settled
  readonly #queues: QueueLabels
  readonly #requests = new Map<string, Sample>()
  readonly #durations = new Histogram(durationBounds)
  readonly #process: ProcessMeter
  readonly #timer: NodeJS.Timeout
  #depth: readonly Depth[] = []
  #workers = { alive: 0, lost: 0 }
  #drain: DrainLevel = 'off'
  #paused: readonly string[] = []
  #up = 1
  #depthAt: number | undefined
  #countAfter = 0
  #scrapedAt = performance.now()
  #reading: Promise<void> | undefined

  constructor(options: MeterOptions) {
    this.#options = options
    this.#queues = new QueueLabels(options.engine.operations.map(({ queue }) => queue))
    this.#process = new ProcessMeter(options.engine)
    this.#settled = new Settled(options.engine, this.#queues)
    this.#timer = setInterval(() => this.#tick(), options.metricsMs)
    this.#tick()
  }

  /** A request was answered. */
  answered(method: string, route: string, status: number, seconds: number): void {
    const bucket = durationBounds.filter((bound) => seconds > bound).length
    this.#durations.add({ method, route }, bucket, 1, seconds)
    const key = `${method} ${route} ${status}`
    const sample = this.#requests.get(key) ?? { labels: { method, route, status: String(status) }, value: 0 }
    this.#requests.set(key, { ...sample, value: sample.value + 1 })
  }

  /** What is known, at once; only the very first scrape waits for the first look. */
  async text(): Promise<string> {
    const wasIdle = performance.now() - this.#scrapedAt > idleAfterMs
    this.#scrapedAt = performance.now()
    if (wasIdle) this.#tick()
    if (this.#depthAt === undefined || wasIdle) await this.#readingFor(firstLookMs)
    return [metricsText(this.#samples()), ...this.#options.more.map((one) => one())].join('')
  }

  /** Waits for the look under way; not for a Postgres that does not answer, which the numbers then say. */
  async #readingFor(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, ms, 'late')
    })
    const first = await Promise.race([this.#reading, late])
    clearTimeout(timer)
    if (first === 'late') this.#up = 0
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#process.close()
    await this.#reading
  }

  #tick(): void {
    if (performance.now() - this.#scrapedAt > idleAfterMs) return
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
  }

  async #read(): Promise<void> {
    const { engine, logger } = this.#options
    try {
      await this.#settled.look()
      const workers = await engine.workers()
      this.#workers = {
        alive: workers.filter(({ lost }) => !lost).length,
        lost: workers.filter(({ lost }) => lost).length,
      }
      this.#drain = (await engine.drain()).level
      const paused = (await engine.queues()).filter(({ pausedAt }) => pausedAt !== undefined)
      this.#paused = [...new Set(paused.map(({ queue }) => this.#queues.labelOf(queue)))]
      if (performance.now() >= this.#countAfter) await this.#count()
      this.#up = 1
    } catch (error) {
      if (this.#up === 1) logger.warn({ err: error }, 'metrics_not_read')
      this.#up = 0
    }
  }

  async #count(): Promise<void> {
    const startedAt = performance.now()
    this.#depth = withLabels(await this.#options.engine.depth(), this.#queues)
    this.#depthAt = performance.now()
    this.#countAfter = this.#depthAt + (this.#depthAt - startedAt) * restPerCount
  }

  #samples(): Parameters<typeof metricsText>[0] {
    const depth = (value: (one: Depth) => number | null) =>
      this.#depth.flatMap((one) => {
        const number = value(one)
        return number === null ? [] : [{ labels: { queue: one.queue, operation: one.operation }, value: number }]
      })
    const one = (value: number) => [{ labels: {}, value }]
    const ageSeconds = this.#depthAt === undefined ? 0 : (performance.now() - this.#depthAt) / 1000
    return {
      fencepost_jobs_pending: depth(({ pending }) => pending),
      fencepost_jobs_due: depth(({ due }) => due),
      fencepost_jobs_running: depth(({ running }) => running),
      fencepost_jobs_deferred: depth(({ deferred }) => deferred),
      fencepost_oldest_pending_age_seconds: depth(({ oldestSeconds }) =>
        oldestSeconds === null ? null : oldestSeconds + ageSeconds,
      ),
      fencepost_workers: Object.entries(this.#workers).map(([state, value]) => ({ labels: { state }, value })),
      fencepost_queue_paused: this.#paused.map((queue) => ({ labels: { queue }, value: 1 })),
      fencepost_drain_level: one(drainLevels.indexOf(this.#drain)),
      fencepost_jobs_settled_total: this.#settled.jobs,
      fencepost_job_duration_seconds: this.#settled.duration.samples(),
      fencepost_queue_wait_seconds: this.#settled.wait.samples(),
      fencepost_stale_writebacks_total: one(this.#settled.staleWritebacks),
      fencepost_lease_expiries_total: one(this.#settled.leaseExpiries),
      fencepost_run_agains_total: one(this.#settled.runAgains),
      fencepost_timeouts_total: one(this.#settled.timeouts),
      fencepost_jobs_unstarted_total: one(this.#settled.unstarted),
      fencepost_metrics_age_seconds: one(ageSeconds),
      fencepost_database_up: one(this.#up),
      fencepost_http_requests_total: [...this.#requests.values()],
      fencepost_http_streams: one(this.#options.streams()),
      fencepost_http_request_duration_seconds: this.#durations.samples(),
      ...this.#process.samples(),
    }
  }
}

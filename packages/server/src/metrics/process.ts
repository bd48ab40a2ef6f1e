import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Engine } from '@fencepost/engine'
import type { MetricName } from './table.ts'
import type { Sample } from './text.ts'

const nanoseconds = 1e9
const microseconds = 1e6
const resolutionMs = 20

/** What this process uses: connections, processor, memory, and how late its event loop is. */
export class ProcessMeter {
  readonly #engine: Engine
  readonly #lag = monitorEventLoopDelay({ resolution: resolutionMs })

  constructor(engine: Engine) {
    this.#engine = engine
    this.#lag.enable()
  }

  samples(): Partial<Record<MetricName, Sample[]>> {
    const one = (value: number) => [{ labels: {}, value }]
    const { total, idle, waiting } = this.#engine.connections()
    const { user, system } = process.cpuUsage()
    return {
      fencepost_pool_connections: [
        { labels: { state: 'idle' }, value: idle },
        { labels: { state: 'in_use' }, value: total - idle },
      ],
      fencepost_pool_waiting: one(waiting),
      nodejs_eventloop_lag_seconds: this.#lags(),
      process_cpu_seconds_total: one((user + system) / microseconds),
      process_start_time_seconds: one(Math.round(Date.now() / 1000 - process.uptime())),
      process_resident_memory_bytes: one(process.memoryUsage.rss()),
    }
  }

  close(): void {
    this.#lag.disable()
  }

  // What it measures includes the interval at which it looks.
  #lags(): Sample[] {
    const seconds = (value: number) =>
      Number.isFinite(value) ? Math.max(0, value / nanoseconds - resolutionMs / 1000) : 0
    const { mean, max } = this.#lag
    const samples = { mean, p99: this.#lag.percentile(99), max }
    this.#lag.reset()
    return Object.entries(samples).map(([stat, value]) => ({ labels: { stat }, value: seconds(value) }))
  }
}

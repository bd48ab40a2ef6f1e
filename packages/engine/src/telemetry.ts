import { createNoopMeter, metrics, SpanStatusCode, trace, type Meter, type Span } from '@opentelemetry/api'
import type { Outcome } from './attempt/settle.ts'
import type { Claimed } from './lifecycle/claim.ts'
import { version } from './version.ts'

/*
 * Spans and metrics through the OpenTelemetry API alone: without an SDK in the program they go nowhere and cost nothing.
 * docs/reference/metrics.md lists them; a test compares.
 */

const scope = '@fencepost/engine'

export const metricNames = {
  claimDuration: 'fencepost.claim.duration',
  queueWait: 'fencepost.queue.wait',
  handlerDuration: 'fencepost.handler.duration',
  settled: 'fencepost.settled',
  staleWritebacks: 'fencepost.stale_writebacks',
  leaseExpiries: 'fencepost.lease_expiries',
  runAgains: 'fencepost.run_agains',
  inFlight: 'fencepost.in_flight',
} as const

export type Telemetry = ReturnType<typeof createTelemetry>

/** Made when an engine is opened: by then the program has set up its SDK, if it has one. */
export function createTelemetry() {
  const meter = metrics.getMeter(scope, version)
  const tracer = trace.getTracer(scope, version)
  const isObserved = hasTracing() || !(meter instanceof createNoopMeter().constructor)
  const { claimDuration, queueWait, handlerDuration, settled, staleWritebacks, leaseExpiries, runAgains, inFlight } =
    instruments(meter)
  return {
    claimed(queue: string | undefined, ms: number, jobs: readonly Claimed[]): void {
      if (!isObserved) return
      claimDuration.record(ms / 1000, queue === undefined ? {} : { queue })
      for (const job of jobs) queueWait.record(job.waitedMs / 1000, { queue: job.queue, operation: job.operation })
    },
    settled(operation: string, outcome: Outcome['kind']): void {
      settled.add(1, { operation, outcome })
    },
    staleWriteback(operation: string, verb: string): void {
      staleWritebacks.add(1, { operation, verb })
    },
    expired(count: number): void {
      if (count > 0) leaseExpiries.add(count)
    },
    ranAgain(operation: string): void {
      runAgains.add(1, { operation })
    },
    /** Runs a handler inside a span of its own, measured. */
    running(claimed: Claimed, run: () => Promise<Outcome>): Promise<Outcome> {
      if (!isObserved) return run()
      const { operation, jobId, attemptId, attempts, queue } = claimed
      const startedAt = performance.now()
      inFlight.add(1, { operation })
      const attributes = {
        'fencepost.job_id': jobId,
        'fencepost.attempt_id': attemptId,
        'fencepost.operation': operation,
        'fencepost.queue': queue,
        'fencepost.attempt': attempts,
      }
      return tracer.startActiveSpan(`run ${operation}`, { attributes }, async (span) => {
        const outcome = await run()
        inFlight.add(-1, { operation })
        handlerDuration.record((performance.now() - startedAt) / 1000, { operation, outcome: outcome.kind })
        endSpan(span, outcome)
        return outcome
      })
    },
  }
}

function instruments(meter: Meter) {
  const seconds = { unit: 's' }
  const claimDuration = meter.createHistogram(metricNames.claimDuration, {
    ...seconds,
    description: 'How long a claim took, found or not.',
  })
  const queueWait = meter.createHistogram(metricNames.queueWait, {
    ...seconds,
    description: 'How long a job had been due when it was claimed.',
  })
  const handlerDuration = meter.createHistogram(metricNames.handlerDuration, {
    ...seconds,
    description: 'How long a handler ran.',
  })
  const settled = meter.createCounter(metricNames.settled, { description: 'Attempts settled, by outcome.' })
  const staleWritebacks = meter.createCounter(metricNames.staleWritebacks, {
    description: 'Writes that the fence kept out.',
  })
  const leaseExpiries = meter.createCounter(metricNames.leaseExpiries, {
    description: 'Attempts that this process found expired.',
  })
  const runAgains = meter.createCounter(metricNames.runAgains, { description: 'Jobs that were run again.' })
  const inFlight = meter.createUpDownCounter(metricNames.inFlight, { description: 'Handlers that are running.' })
  return { claimDuration, queueWait, handlerDuration, settled, staleWritebacks, leaseExpiries, runAgains, inFlight }
}

// A program without an SDK has the API's own provider, whose tracers have nobody to pass spans on to.
function hasTracing(): boolean {
  const provider = trace.getTracerProvider() as { getDelegate?: () => object }
  return provider.getDelegate?.().constructor.name !== 'NoopTracerProvider'
}

function endSpan(span: Span, outcome: Outcome): void {
  span.setAttribute('fencepost.outcome', outcome.kind)
  if (outcome.kind === 'failed') {
    span.setStatus({ code: SpanStatusCode.ERROR, message: outcome.error })
    span.setAttribute('error.type', outcome.errorCode)
  }
  span.end()
}

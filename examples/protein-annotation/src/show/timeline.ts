import type { Job, JobEvent } from '@fencepost/engine'
import type { Screen, Style } from './screen.ts'

/** An event, and the job it belongs to. */
export interface Happening {
  event: JobEvent
  job: Job
}

const labelWidth = 24
const eventWidth = 15
// Of children these would fill the screen, and say no more than the bars do.
const routine = new Set(['job.submitted', 'job.started', 'job.deferred', 'job.completed'])

/** The lines of the timeline: what happened to parents, and what is out of the ordinary with their children. */
export function timelineLines(happenings: readonly Happening[], screen: Screen): string[] {
  const worthALine = happenings.filter(({ event, job }) => job.parentJobId === undefined || !routine.has(event.event))
  return alike(worthALine).map((some) => line(some, screen))
}

/** Happenings in a row that differ in their job alone, such as a hundred cancelled children. */
function alike(happenings: readonly Happening[]): Happening[][] {
  const groups: Happening[][] = []
  for (const happening of happenings) {
    const last = groups.at(-1)
    const kind = kindOf(happening)
    if (last?.[0] !== undefined && kindOf(last[0]) === kind && happening.job.parentJobId !== undefined) {
      last.push(happening)
    } else {
      groups.push([happening])
    }
  }
  return groups.flatMap((group) => (group.length > 2 ? [group] : group.map((one) => [one])))
}

function kindOf({ event, job }: Happening): string {
  return `${job.operation} ${event.event} ${messageOf(event)}`
}

function line(some: readonly Happening[], screen: Screen): string {
  const [{ event, job }] = some as [Happening]
  const indent = job.parentJobId === undefined ? '' : '  '
  const label = some.length > 1 ? `${indent}${some.length} × ${job.operation}` : `${indent}${labelOf(job)}`
  const columns = [
    screen.style('dim', timeOf(event.ts)),
    label.padEnd(labelWidth),
    screen.style(styleOf(event), nameOf(event, job).padEnd(eventWidth)),
    messageOf(event),
  ]
  return columns.join('  ').trimEnd()
}

/** A job in a few words: its operation, and which model or batch it is for. */
export function labelOf({ operation, payload }: Job): string {
  const { batch, model, dataset } = payload as { batch?: number; model?: { k: number }; dataset?: string }
  return `${operation} ${batch ?? (model === undefined ? (dataset ?? '') : `k=${model.k}`)}`.trimEnd()
}

/** An event's name, without the operation's, which its own events begin with. */
function nameOf({ event }: JobEvent, { operation }: Job): string {
  return event.startsWith(`${operation}.`) ? event.slice(operation.length + 1) : event
}

function messageOf({ event, message, fields }: JobEvent): string {
  const some = (fields ?? {}) as Record<string, unknown>
  if (event === 'job.deferred') return `waits for ${String(some['children'])} children`
  if (event === 'job.started') return `attempt ${String(some['attempt'])}`
  const delay = some['delay_seconds'] ?? (typeof some['delay_ms'] === 'number' ? some['delay_ms'] / 1000 : undefined)
  const again = typeof delay === 'number' ? ` (again in ${delay.toFixed(1)} s)` : ''
  return `${message ?? ''}${again}`
}

function styleOf({ event, level }: JobEvent): Style {
  if (level === 'error') return 'red'
  if (level === 'warning' || event === 'job.retried' || event === 'job.retry_later') return 'yellow'
  return event === 'job.completed' ? 'green' : 'cyan'
}

function timeOf(ts: string): string {
  return ts.slice(11, 23)
}

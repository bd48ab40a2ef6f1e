import type { EventRow, JobRow } from './snapshot.ts'

const terminal = ['job.completed', 'job.failed', 'job.cancelled']
const ends = [...terminal, 'job.retried', 'job.released', 'job.deferred', 'job.expired', 'job.recovered']
const afterwards = ['job.fence_rejected', 'job.deleted']

/** The events of a job, by id, tell one story: submitted, then attempts one after another, then one end. */
export function checkStory(row: JobRow, events: readonly EventRow[]): void {
  const wrong = (what: string) =>
    new Error(`The events of job ${row.payload.job} do not fit: ${what}. ${events.map(({ event }) => event).join(' ')}`)
  if (events[0]?.event !== 'job.submitted') throw wrong('the first is not job.submitted')
  const isOver = row.status !== 'pending' && row.status !== 'running'
  const last = events.filter(({ event }) => terminal.includes(event))
  if (last.length !== (isOver ? 1 : 0)) throw wrong(`${last.length} ends`)
  if (isOver && last[0]?.event !== `job.${row.status}`) throw wrong(`the job is ${row.status}`)
  const started = new Set([null, ...events.flatMap((one) => (one.event === 'job.started' ? one.attempt_id : []))])
  const folded = events.some(({ event }) => event === 'job.retry_later')
  let running: string | null = null
  let before: EventRow | undefined
  let ended = false
  for (const event of events) {
    if (before !== undefined && event.id <= before.id) throw wrong('two with one id')
    if (before !== undefined && event.ts < before.ts) throw wrong(`time goes backwards at ${event.event}`)
    if (ended && !afterwards.includes(event.event)) throw wrong(`${event.event} after the end`)
    ended ||= terminal.includes(event.event)
    if (event.event === 'job.started') {
      if (running !== null || event.attempt_id === null) throw wrong('an attempt starts while another runs')
      running = event.attempt_id
    } else if (folded && !started.has(event.attempt_id) && !afterwards.includes(event.event)) {
      // An attempt that was given back has no start of its own.
      if (running !== null) throw wrong(`${event.event} while another attempt runs`)
    } else if (!afterwards.includes(event.event) && event.attempt_id !== null) {
      // Silent for too long and with no attempt left: one end, told as two events.
      const isSecondHalf = before?.event === 'job.expired' && event.event === 'job.failed'
      if (event.attempt_id !== (isSecondHalf ? before?.attempt_id : running)) throw wrong(`whose is ${event.event}`)
      if (ends.includes(event.event)) running = null
    } else if (ends.includes(event.event) && running !== null) throw wrong(`${event.event} is nobody’s`)
    before = event
  }
  if ((running !== null) !== (row.status === 'running' && row.deferred_at === null))
    throw wrong('an attempt has no end')
}

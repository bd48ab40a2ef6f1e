import { jobEvent, streamClosedEvent } from '@fencepost/client'
import { sql } from '@fencepost/engine'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { claimOne, submitted } from '../../engine/test/bed.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'
import { view, type Viewer } from './viewer.ts'

let on: ServerBed
const viewers: Viewer[] = []
beforeAll(async () => {
  on = await openServerBed({ pingMs: 100 })
})
beforeEach(() => on.bed.reset())
afterEach(async () => {
  for (const viewer of viewers.splice(0)) viewer.leave()
  await expect.poll(listeners).toBe(0)
})
afterAll(() => on.close())

const open = async (path: string, headers?: Record<string, string>, url = on.url) => {
  const viewer = await view(url, path, headers)
  viewers.push(viewer)
  return viewer
}
const listeners = async () =>
  (
    await on.bed.query(
      `select from pg_stat_activity where datname = current_database() and application_name = 'fencepost listen'`,
    )
  ).length
const names = ({ received }: Pick<Viewer, 'received'>) => received.map(({ event }) => event)
const begun = async () => {
  const jobId = await submitted(on.engine.submit(echo, {}))
  return { jobId, attempt: await claimOne(on.engine) }
}
/** Writes an event, with the next id, in a transaction that stays open. */
const heldEvent = (jobId: string, event: string) =>
  on.bed.hold(({ t, query }) =>
    query<{ id: bigint }>(
      'test',
      sql`insert into ${t.storedEvents} (job_id, ts, event) values (${jobId}, ${t.now}, ${event}) returning id`,
    ),
  )

describe('the stream of a job', () => {
  test('has its past, then what happens, and ends after the terminal event', async () => {
    const { jobId, attempt } = await begun()
    const viewer = await open(`/jobs/${jobId}/events`)
    await viewer.until(2)
    await attempt.emit('echo.one', { message: 'line one\nline two', fields: { a: 1 } })
    await viewer.until(3)
    await on.engine.complete(attempt, {})
    await viewer.ended
    expect(names(viewer)).toEqual(['job.submitted', 'job.started', 'echo.one', 'job.completed', streamClosedEvent])
    expect(viewer.received.at(-1)?.data).toEqual({ reason: 'job_finished' })
    const events = viewer.received.slice(0, -1).map(({ data }) => jobEvent.strict().parse(data))
    const listed = await on.http('GET', `/jobs/${jobId}/events`)
    expect(listed.json).toEqual(events)
  })

  test('tells of what a worker in another process writes, within 100 ms of its commit', async () => {
    const jobId = await submitted(on.engine.submit(echo, {}))
    const attempt = await claimOne(await on.bed.open())
    const viewer = await open(`/jobs/${jobId}/events`)
    await viewer.until(2)
    const took: number[] = []
    for (let nth = 0; nth < 20; nth += 1) {
      await attempt.emit('echo.tick')
      const committed = Date.now()
      await viewer.until(3 + nth)
      took.push((viewer.received.at(-1)?.at ?? Infinity) - committed)
    }
    took.sort((a, b) => a - b)
    // Half of them: on a machine with other work, single ones may come late.
    expect(took[10]).toBeLessThan(100)
  })

  test('is told by a worker that listens, without looking by itself', async () => {
    const server = await on.open({ eventPollMs: 3_600_000 })
    const worker = await on.bed.open()
    const stop = new AbortController()
    const working = worker.work({ signal: stop.signal, queues: ['elsewhere'] })
    await expect.poll(listeners).toBe(1)
    const jobId = await submitted(on.engine.submit(echo, {}))
    const attempt = await claimOne(worker)
    const viewer = await open(`/jobs/${jobId}/events`, {}, server.url)
    await viewer.until(2)
    await expect.poll(listeners).toBe(2)
    // The worker hears that somebody views a moment after the viewer is there.
    await expect
      .poll(async () => {
        await attempt.emit('echo.tick')
        return viewer.received.length
      })
      .toBeGreaterThan(4)
    await worker.complete(attempt, {})
    await viewer.ended
    expect(names(viewer).slice(-2)).toEqual(['job.completed', streamClosedEvent])
    stop.abort()
    await working
    await server.close()
  })

  test('is resumed after the last event that was received', async () => {
    const { jobId, attempt } = await begun()
    for (let nth = 0; nth < 3; nth += 1) await attempt.emit(`echo.n${nth}`)
    const first = await open(`/jobs/${jobId}/events`)
    const lastId = (await first.until(4))[3]?.id ?? ''
    first.leave()
    await attempt.emit('echo.later')
    const second = await open(`/jobs/${jobId}/events`, { 'last-event-id': lastId })
    await on.engine.complete(attempt, {})
    await second.ended
    expect(names(second)).toEqual(['echo.n2', 'echo.later', 'job.completed', streamClosedEvent])
    const third = await open(`/jobs/${jobId}/events`, { 'last-event-id': second.received[2]?.id ?? '' })
    await third.ended
    expect(names(third)).toEqual([streamClosedEvent])
    const plain = await open(`/jobs/${jobId}/events?after=${first.received[3]?.data.id}`)
    await plain.ended
    expect(names(plain)).toEqual(['echo.n2', 'echo.later', 'job.completed', streamClosedEvent])
  })

  test('has an event that commits after one with a larger id', async () => {
    const { jobId, attempt } = await begun()
    const viewer = await open(`/jobs/${jobId}/events`)
    await viewer.until(2)
    const early = await heldEvent(jobId, 'echo.drawn_first')
    await attempt.emit('echo.drawn_second')
    await viewer.until(3)
    const cursor = viewer.received[2]?.id ?? ''
    await early.commit()
    await viewer.until(4)
    expect(names(viewer).slice(2)).toEqual(['echo.drawn_second', 'echo.drawn_first'])
    expect(BigInt(viewer.received[3]?.data.id ?? 0)).toBeLessThan(BigInt(viewer.received[2]?.data.id ?? 0))
    // One who had left in between is given all again: nobody knows which he has missed.
    const resumed = await open(`/jobs/${jobId}/events`, { 'last-event-id': cursor })
    await resumed.until(4)
    expect(names(resumed)).toEqual(['job.submitted', 'job.started', 'echo.drawn_first', 'echo.drawn_second'])
    // One who has both goes on where he was.
    const complete = await open(`/jobs/${jobId}/events`, { 'last-event-id': viewer.received[3]?.id ?? '' })
    await on.engine.complete(attempt, {})
    await complete.ended
    expect(names(complete)).toEqual(['job.completed', streamClosedEvent])
  })

  test('is kept alive by pings', async () => {
    const { jobId } = await begun()
    const viewer = await open(`/jobs/${jobId}/events`)
    await expect.poll(() => viewer.pings()).toBeGreaterThan(2)
  })

  test('that was asked for just before the server stops ends with shutdown, too', async () => {
    const { jobId } = await begun()
    const server = await on.open()
    const held = await on.bed.hold(({ t, query }) =>
      query('test', sql`lock table ${t.liveJobs} in access exclusive mode`),
    )
    const opening = open(`/jobs/${jobId}/events`, {}, server.url)
    // Postgres shows the beginning of a statement, which is where it names the columns of a job.
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query ~ '^\\s*select job_id, operation'`
    await expect.poll(() => on.bed.query(waiting)).toHaveLength(1) // and not only the server's own sweep
    const closed = server.close()
    await held.rollback()
    const viewer = await opening
    await viewer.ended
    expect(viewer.received.map(({ data }) => data)).toEqual([{ reason: 'shutdown' }])
    await closed
  }, 8_000)

  test('ends with shutdown when the server stops', async () => {
    const other = await on.open()
    const { jobId } = await begun()
    const viewer = await open(`/jobs/${jobId}/events`, {}, other.url)
    await viewer.until(2)
    await other.close()
    await viewer.ended
    expect(viewer.received.at(-1)).toMatchObject({ event: streamClosedEvent, data: { reason: 'shutdown' } })
  })

  test('goes on when the connections to Postgres are cut', async () => {
    const { jobId, attempt } = await begun()
    const viewer = await open(`/jobs/${jobId}/events`)
    await viewer.until(2)
    await on.bed.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name in ('fencepost', 'fencepost listen')`,
    )
    await expect.poll(async () => (await attempt.emit('echo.after').catch(() => undefined))?.written).toBe(true)
    await viewer.until(3)
    expect(names(viewer)).toContain('echo.after')
  })
})

describe('the stream of all jobs', () => {
  test('has the transitions of all jobs, and nothing of what was before', async () => {
    const { attempt: old } = await begun()
    const viewer = await open('/events')
    const jobIds = await Promise.all(Array.from({ length: 5 }, () => submitted(on.engine.submit(echo, {}))))
    await on.runAll()
    await old.emit('echo.not_a_transition')
    await on.engine.fail(old, new Error('not this time'))
    await viewer.until(16)
    const seen = viewer.received.map(({ event, data }) => `${event} ${data.job_id}`)
    const expected = jobIds.flatMap((id) => ['submitted', 'started', 'completed'].map((what) => `job.${what} ${id}`))
    expect(seen.sort()).toEqual([...expected, `job.retried ${old.jobId}`].sort())
  })

  test('has a transition that commits after one with a larger id, and can be resumed without missing any', async () => {
    const { jobId } = await begun()
    const viewer = await open('/events')
    const late = await heldEvent(jobId, 'job.drawn_first')
    const other = await submitted(on.engine.submit(echo, {}))
    await viewer.until(1)
    const cursor = viewer.received[0]?.id ?? ''
    viewer.leave()
    await late.commit()
    await on.engine.cancel(other)
    const resumed = await open('/events', { 'last-event-id': cursor })
    await expect.poll(() => names(resumed)).toEqual(expect.arrayContaining(['job.drawn_first', 'job.cancelled']))
    const ids = resumed.received.map(({ data }) => data.id)
    expect(new Set(ids).size).toBe(ids.length)
    const live = await heldEvent(jobId, 'job.drawn_third')
    await on.engine.submit(echo, {})
    await expect.poll(() => names(resumed).at(-1)).toBe('job.submitted')
    await live.commit()
    await expect.poll(() => names(resumed).at(-1)).toBe('job.drawn_third')
  })
})

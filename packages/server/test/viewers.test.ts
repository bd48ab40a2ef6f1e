import { streamClosedEvent } from '@fencepost/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimOne, submitted } from '../../engine/test/bed.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'
import { view, type Viewer } from './viewer.ts'

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed()
})
afterAll(() => on.close())

const named = async (name: string) =>
  (
    await on.bed.query(`select from pg_stat_activity where datname = current_database() and application_name = $1`, [
      name,
    ])
  ).length
const names = ({ received }: Pick<Viewer, 'received'>) => received.map(({ event }) => event)

test('a hundred viewers get 300 events in order, over one listening connection and none of the pool', async () => {
  const jobId = await submitted(on.engine.submit(echo, {}))
  const attempt = await claimOne(on.engine)
  const connections = () => named('fencepost')
  // The pool opens as many as it may when many ask at once; let it.
  await Promise.all(Array.from({ length: 50 }, () => on.engine.drain()))
  const before = await connections()
  const hundred = await Promise.all(Array.from({ length: 100 }, () => view(on.url, `/jobs/${jobId}/events`)))
  await Promise.all(hundred.map((viewer) => viewer.until(2)))
  expect(await named('fencepost listen')).toBe(1)
  for (let nth = 0; nth < 300; nth += 1) await attempt.emit('echo.tick', { fields: { nth } })
  await on.engine.complete(attempt, {})
  await Promise.all(hundred.map((viewer) => viewer.ended))
  const ticks = Array.from({ length: 300 }, (_, nth) => nth)
  for (const viewer of hundred) {
    const seen = viewer.received.filter(({ event }) => event === 'echo.tick').map(({ data }) => data.fields?.['nth'])
    expect(seen).toEqual(ticks)
    expect(names(viewer).slice(-2)).toEqual(['job.completed', streamClosedEvent])
  }
  expect(await connections()).toBe(before)
  const idle = await on.bed.query<{ state: string }>(
    `select state from pg_stat_activity where datname = current_database() and application_name = 'fencepost'
       and state <> 'idle'`,
  )
  expect(idle).toEqual([])
}, 120_000)

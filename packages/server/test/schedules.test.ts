import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openServerBed, type ServerBed } from './server-bed.ts'

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed()
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

const hourly = { operation: 'echo', payload: { n: 1 }, cron: '0 * * * *', time_zone: 'Europe/Berlin' }

test('a schedule is made, shown, paused, resumed and removed', async () => {
  const { client } = on
  const made = await client.putSchedule('nightly', hourly)
  expect(made).toMatchObject({ ...hourly, every_ms: null, catch_up: 'once', overlap: 'skip', paused_at: null })
  expect(made.next_times).toHaveLength(5)
  expect(await client.listSchedules()).toEqual([made])
  expect(await client.getSchedule('nightly')).toEqual(made)
  expect(await client.pauseSchedule('nightly')).toMatchObject({ next_times: [], paused_at: expect.any(String) })
  expect(await client.resumeSchedule('nightly')).toMatchObject({ paused_at: null })
  await client.deleteSchedule('nightly')
  expect(await client.listSchedules()).toEqual([])
})

test('schedules are listed in pages, by number and by size', async () => {
  const names = Array.from({ length: 7 }, (_, nth) => `s${nth}`)
  for (const name of names) await on.client.putSchedule(name, { ...hourly, payload: { text: 'x'.repeat(600_000) } })
  const pages: string[][] = []
  let after: string | null = null
  do {
    const answer = await on.http('GET', `/schedules?limit=4${after === null ? '' : `&after=${after}`}`)
    pages.push((answer.json as { name: string }[]).map(({ name }) => name))
    after = answer.headers.get('next-after')
  } while (after !== null)
  expect(pages).toEqual([names.slice(0, 3), names.slice(3, 6), names.slice(6)]) // of two megabytes each
  expect((await on.client.listSchedules({ limit: 2, after: 's1' })).map(({ name }) => name)).toEqual(['s2', 's3'])
  const all: string[] = []
  for await (const { name } of on.client.eachSchedule({ limit: 2 })) all.push(name)
  expect(all).toEqual(names)
})

test('the job that it submits is named with its due time', async () => {
  const { next_times: times } = await on.client.putSchedule('nightly', hourly)
  await on.bed.advance(3_600_000)
  const { jobIds } = await on.engine.schedules.submitDue()
  const schedule = await on.client.getSchedule('nightly')
  expect(schedule).toMatchObject({ last_outcome: 'submitted', last_job_id: jobIds[0] })
  expect(Date.parse(schedule.last_due_at ?? '')).toBe(Date.parse(times[0] ?? ''))
  expect(await on.client.getJob(jobIds[0] ?? '')).toMatchObject({ submitted_by: 'schedule nightly' })
})

test.each([
  ['a cron expression of four fields', { ...hourly, cron: '* * * *' }, 'request_invalid'],
  ['a zone that is none', { ...hourly, time_zone: 'Nowhere/Land' }, 'request_invalid'],
  ['two rules', { ...hourly, every_ms: 5_000 }, 'request_invalid'],
  ['an unknown operation', { ...hourly, operation: 'unknown' }, 'operation_unknown'],
  ['a payload that does not fit', { operation: 'resize', payload: {}, every_ms: 5_000 }, 'payload_invalid'],
])('%s is refused', async (_, body, code) => {
  expect(await on.http('PUT', '/schedules/nightly', { body })).toMatchObject({ code })
  expect(await on.client.listSchedules()).toEqual([])
})

test.each(['GET', 'DELETE'])('%s of a schedule that is not there is 404', async (method) => {
  expect(await on.http(method, '/schedules/absent')).toMatchObject({ status: 404, code: 'schedule_not_found' })
})

test('a viewer reads schedules and changes none', async () => {
  const other = await openServerBed()
  try {
    const token = await other.token('viewer')
    expect(await other.http('GET', '/schedules', { token })).toMatchObject({ status: 200 })
    expect(await other.http('PUT', '/schedules/a', { token, body: hourly })).toMatchObject({ status: 403 })
    expect(await other.http('POST', '/schedules/a/pause', { token })).toMatchObject({ status: 403 })
  } finally {
    await other.close()
  }
})

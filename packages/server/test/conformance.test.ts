import { apiErrors, errorsOf, job, routes, streamClosedEvent, type Route } from '@fencepost/client'
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { claimOne } from '../../engine/test/bed.ts'
import { echo, fan, openServerBed, resize, type HttpAnswer, type HttpInit, type ServerBed } from './server-bed.ts'

/*
 * Every row of the table of routes, over real HTTP: each status it can answer with, and each answer as its schema says.
 * What has been answered is kept, and at the end compared with the table: nothing in it is only written down.
 */

let on: ServerBed
const answered = new Map<string, Set<number | string>>()
beforeAll(async () => {
  on = await openServerBed()
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

/** Calls a route and checks the answer against its schemas. */
async function ask(route: Route, params: Record<string, unknown> = {}, init: HttpInit & { search?: string } = {}) {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])))
  const answer = await on.http(route.method, `${path}${init.search ?? ''}`, init)
  assertFits(route, answer)
  return answer
}

function assertFits(route: Route, { status, json, code, headers, text }: HttpAnswer): void {
  const key = `${route.method} ${route.path}`
  answered.set(key, (answered.get(key) ?? new Set()).add(status).add(code ?? status))
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  if (status >= 400) {
    expect(code, text).toBeDefined()
    expect(errorsOf(route)).toContain(code)
    expect(apiErrors[code as keyof typeof apiErrors].status).toBe(status)
    return
  }
  expect(status).toBe(route.status)
  if (route.answer === null) expect(text).toBe('')
  else if ('mediaType' in route.answer) expect(headers.get('content-type')).toBe(route.answer.mediaType)
  else expect(strict(route.answer).safeParse(json).error).toBeUndefined()
}

// The contract lets later releases add fields; this release has no others.
function strict(schema: z.ZodType): z.ZodType {
  return schema === job ? job.strict() : schema
}

const submit = async (name = 'echo', body: Record<string, unknown> = { payload: {} }, init: HttpInit = {}) => {
  const answer = await ask(routes.submitJob, { name }, { body, ...init })
  return { ...answer, job: answer.json as z.output<typeof job> }
}
const unknownId = '0'.repeat(32)

describe('schedules', () => {
  const body = { operation: 'resize', payload: { image: 'cat' }, every_ms: 60_000 }
  const named = { name: 'nightly' }

  test('are made, shown, paused, resumed and removed', async () => {
    expect(await ask(routes.putSchedule, named, { body })).toMatchObject({ status: 200 })
    expect((await ask(routes.listSchedules)).json).toMatchObject([{ ...named, ...body }])
    expect((await ask(routes.getSchedule, named)).json).toMatchObject(named)
    expect((await ask(routes.pauseSchedule, named)).json).toMatchObject({ next_times: [] })
    expect((await ask(routes.resumeSchedule, named)).json).toMatchObject({ paused_at: null })
    expect(await ask(routes.deleteSchedule, named)).toMatchObject({ status: 204 })
  })

  test('404 where there is none', async () => {
    for (const route of [routes.getSchedule, routes.pauseSchedule, routes.resumeSchedule, routes.deleteSchedule]) {
      expect(await ask(route, named)).toMatchObject({ status: 404, code: 'schedule_not_found' })
    }
  })

  test('400 and 404 for what no job can be made of', async () => {
    const answers = [
      await ask(routes.putSchedule, named, { body: { ...body, payload: {} } }),
      await ask(routes.putSchedule, named, { body: { ...body, cron: '* * * * *' } }),
      await ask(routes.putSchedule, named, { body: { ...body, operation: 'nothing' } }),
    ]
    expect(answers.map(({ code }) => code)).toEqual(['payload_invalid', 'request_invalid', 'operation_unknown'])
  })
})

describe('POST /operations/{name}/jobs', () => {
  test('202 is the job, and where to look for it', async () => {
    const body = {
      payload: { a: [1, 'ä'] },
      priority: -3,
      max_attempts: 7,
      queue: 'default',
      slot_key: 's',
      dedup_key: 'd',
    }
    const { status, headers, job: made } = await submit('echo', { ...body, lock_key: 'l', pipeline_id: unknownId })
    expect(status).toBe(202)
    expect(headers.get('location')).toBe(`/jobs/${made.job_id}`)
    expect(headers.get('retry-after')).toBe('30')
    expect(made).toMatchObject({ ...body, lock_key: 'l', pipeline_id: unknownId, status: 'pending', results: null })
    expect(made).toMatchObject({ operation: 'echo', attempts: 0, submitted_by: 'local', started_at: null })
  })

  test('a time or a delay makes it wait', async () => {
    const { job: later } = await submit('echo', { payload: {}, run_after: '2999-01-01T00:00:00+01:00' })
    expect(later.run_after).toBe('2998-12-31T23:00:00.000000Z')
    const { job: delayed } = await submit('echo', { payload: {}, delay_ms: 60_000 })
    expect(Date.parse(delayed.run_after) - Date.parse(delayed.submitted_at)).toBe(60_000)
  })

  test.each([
    ['an unknown field', { payload: {}, prio: 1 }, 'request_invalid'],
    ['a wrong type', { payload: {}, priority: 'high' }, 'request_invalid'],
    ['a number out of range', { payload: {}, max_attempts: 0 }, 'request_invalid'],
    ['a time that is none', { payload: {}, run_after: 'tomorrow' }, 'request_invalid'],
    ['two times', { payload: {}, run_after: '2999-01-01T00:00:00Z', delay_ms: 1 }, 'request_invalid'],
    ['an empty key', { payload: {}, lock_key: '' }, 'request_invalid'],
    ['a body that is a list', [], 'request_invalid'],
    ['a payload that does not fit', { payload: { image: 5 } }, 'payload_invalid'],
  ])('400 for %s', async (_, body, code) => {
    const answer = await ask(routes.submitJob, { name: 'resize' }, { body })
    expect(answer).toMatchObject({ status: 400, code })
    expect(answer.json).toMatchObject({ error: { details: { issues: expect.any(Array) } } })
    expect(await on.bed.query('select from fencepost.jobs')).toEqual([])
  })

  test('404 for an operation that is not there', async () => {
    expect(await submit('nothing')).toMatchObject({ status: 404, code: 'operation_unknown' })
  })

  test('409 names the job that holds the lock, or has the dedup key', async () => {
    const { job: holder } = await submit('resize', { payload: { image: 'cat' } })
    const locked = await submit('resize', { payload: { image: 'cat' } })
    expect(locked).toMatchObject({ status: 409, code: 'lock_held' })
    expect(locked.json).toMatchObject({
      error: { details: { job_id: holder.job_id, lock_key: 'image/cat', running: false } },
    })
    const { job: patient } = await submit('resize', { payload: { image: 'cat' }, on_locked: 'wait' })
    expect(patient).toMatchObject({ status: 'pending', lock_key: 'image/cat' })
    const { json } = await ask(routes.explainJob, { job_id: patient.job_id })
    expect(json).toMatchObject({
      reasons: expect.arrayContaining([
        { reason: 'waiting_for_lock', lock_key: 'image/cat', job_id: holder.job_id, ahead: 0 },
      ]),
    })
    const { job: first } = await submit('echo', { payload: {}, dedup_key: 'once' })
    const second = await submit('echo', { payload: {}, dedup_key: 'once' })
    expect(second).toMatchObject({ status: 409, code: 'duplicate' })
    expect(second.json).toMatchObject({ error: { details: { job_id: first.job_id, dedup_key: 'once' } } })
  })

  test('400 for a key that the operation makes itself, or takes from nobody', async () => {
    const replaced = await submit('resize', { payload: { image: 'cat' }, lock_key: 'dog' })
    expect(replaced).toMatchObject({ status: 400, code: 'key_refused' })
    expect(replaced.json).toMatchObject({ error: { details: { operation: 'resize', key: 'lock' } } })
    for (const key of ['lock_key', 'slot_key', 'dedup_key']) {
      expect(await submit('failing', { payload: {}, [key]: 'image/cat' })).toMatchObject({ code: 'key_refused' })
    }
    expect(await on.bed.query('select from fencepost.jobs')).toEqual([])
  })

  test('503 while drained, with when to come back', async () => {
    await on.engine.setDrain('submissions')
    const answer = await submit()
    expect(answer).toMatchObject({ status: 503, code: 'drained' })
    expect(answer.headers.get('retry-after')).toBe('30')
  })

  test('an Idempotency-Key gives the first answer again, and 422 for another request', async () => {
    const headers = { 'idempotency-key': randomBytes(8).toString('hex') }
    const first = await submit('echo', { payload: { n: 1, m: 2 }, queue: 'default' }, { headers })
    const again = await submit('echo', { queue: 'default', payload: { m: 2, n: 1 } }, { headers })
    expect(again.text).toBe(first.text)
    expect([first, again].map((one) => one.headers.get('idempotency-replayed'))).toEqual([null, 'true'])
    const other = await submit('echo', { payload: { n: 2 } }, { headers })
    expect(other).toMatchObject({ status: 422, code: 'idempotency_mismatch' })
    expect(await submit('echo', { payload: {} }, { headers: { 'idempotency-key': 'a b' } })).toMatchObject({
      status: 400,
    })
    expect(await on.bed.query('select from fencepost.jobs')).toHaveLength(1)
  })
})

describe('GET /jobs', () => {
  const list = async (search: string) => {
    const answer = await ask(routes.listJobs, {}, { search })
    return (answer.json as { job_id: string }[]).map((one) => one.job_id)
  }

  test('is an array, newest first, by every filter, in pages', async () => {
    const { job: a } = await submit('echo', { payload: {}, lock_key: 'x', pipeline_id: unknownId, queue: 'q' })
    const { job: b } = await submit('resize', { payload: { image: 'b' } })
    const { job: c } = await submit('fan', { payload: { children: 1 } })
    await on.runAll()
    const [child = ''] = await list(`?parent=${c.job_id}`)
    expect(await list('')).toEqual([child, c.job_id, b.job_id, a.job_id])
    expect(await list('?status=pending')).toEqual([a.job_id])
    expect(await list('?operation=resize')).toEqual([b.job_id])
    expect(await list('?queue=q')).toEqual([a.job_id])
    expect(await list('?lock_key=x')).toEqual([a.job_id])
    expect(await list(`?pipeline=${unknownId}`)).toEqual([a.job_id])
    expect(await list('?limit=2')).toEqual([child, c.job_id])
    expect(await list(`?limit=2&after=${c.job_id}`)).toEqual([b.job_id, a.job_id])
    expect(await list('?status=running&operation=echo')).toEqual([])
    expect(await list('?status=pending,completed&limit=9')).toEqual([child, c.job_id, b.job_id, a.job_id])
    expect(await list('?operation=resize,fan')).toEqual([c.job_id, b.job_id])
    expect(await list('?text=IMAGE/B')).toEqual([b.job_id])
    expect(await list(`?submitted_from=${b.submitted_at}&submitted_before=${c.submitted_at}`)).toEqual([b.job_id])
    expect(await list('?completed_from=2020-01-01T00:00:00Z&completed_before=2100-01-01T00:00:00Z')).toHaveLength(3)
    expect(await list(`?worker=${encodeURIComponent(on.engine.workerId)}&operation=resize`)).toEqual([b.job_id])
    expect(await list('?error_code=none')).toEqual([])
    expect((await ask(routes.countJobs, {}, { search: '?operation=resize,fan' })).json).toEqual({
      count: 2,
      exact: true,
    })
    expect(await on.client.countJobs({ operation: ['resize', 'fan'], status: 'completed' })).toMatchObject({ count: 2 })
  })

  test.each([
    '?status=done',
    '?status=failed,done',
    '?completed_from=yesterday',
    '?text=',
    '?limit=0',
    '?limit=1001',
    '?limit=1e2',
    '?limit=',
    '?after=1',
    '?parent=x',
    '?table=a.b',
  ])('400 for %s', async (search) => {
    expect(await ask(routes.listJobs, {}, { search })).toMatchObject({ status: 400, code: 'request_invalid' })
  })
})

describe('bulk acts', () => {
  const filter = { operation: ['echo'], status: ['pending'] }
  const preview = async (body: object = { act: 'cancel', filter }) => {
    const answer = await ask(routes.previewBulkAct, {}, { body })
    return answer.json as { token: string; count: number; sample: { job_id: string }[] }
  }

  test('are previewed, started once, and done', async () => {
    const { job: made } = await submit()
    await submit('resize', { payload: { image: 'a' } })
    const { token, count, sample } = await preview()
    expect([count, sample.map(({ job_id: jobId }) => jobId)]).toEqual([1, [made.job_id]])
    const started = await ask(routes.startBulkAct, {}, { body: { token } })
    expect(started).toMatchObject({ status: 202 })
    expect(started.headers.get('location')).toBe(`/bulk-acts/${token}`)
    await on.engine.bulkActs.resume()
    const named = { bulk_act_id: token }
    expect((await ask(routes.getBulkAct, named)).json).toMatchObject({ state: 'completed', done: 1, refused: 0 })
    expect((await ask(routes.listBulkActs)).json).toMatchObject([named])
    expect((await ask(routes.getJob, made)).json).toMatchObject({ status: 'cancelled' })
    expect(await ask(routes.startBulkAct, {}, { body: { token } })).toMatchObject({ status: 202 })
    expect(await ask(routes.stopBulkAct, named)).toMatchObject({ status: 409, code: 'bulk_act_ended' })
  })

  test('are refused without a token, and when more jobs fit than were previewed', async () => {
    const unknown = await ask(routes.startBulkAct, {}, { body: { token: unknownId } })
    expect(unknown).toMatchObject({ status: 409, code: 'bulk_token_invalid' })
    const { token } = await preview()
    await submit()
    expect(await ask(routes.startBulkAct, {}, { body: { token } })).toMatchObject({
      status: 409,
      code: 'bulk_set_grown',
    })
    for (const route of [routes.getBulkAct, routes.stopBulkAct]) {
      const absent = await ask(route, { bulk_act_id: token })
      expect(absent).toMatchObject({ status: 404, code: 'bulk_act_not_found' })
    }
    expect(await ask(routes.previewBulkAct, {}, { body: { act: 'forget', filter } })).toMatchObject({ status: 400 })
  })

  test('are stopped while they wait for drain', async () => {
    const { job: made } = await submit()
    await on.engine.cancel(made.job_id)
    await on.engine.setDrain('submissions')
    const { token } = await preview({ act: 'run_again', filter: {} })
    await ask(routes.startBulkAct, {}, { body: { token } })
    expect((await ask(routes.stopBulkAct, { bulk_act_id: token })).json).toMatchObject({ state: 'stopped', done: 0 })
  })
})

describe('one job', () => {
  test('GET says when to look again while it has not ended, and has its results when there are any', async () => {
    const { job: made } = await submit('resize', { payload: { image: 'dog' } })
    const pending = await ask(routes.getJob, made)
    expect(pending.headers.get('retry-after')).toBe('30')
    expect(pending.json).toEqual(made)
    const attempt = await claimOne(on.engine)
    const running = await ask(routes.getJob, made)
    expect(running.headers.get('retry-after')).toBe('30')
    expect(running.json).toMatchObject({ status: 'running', attempts: 1, locked_by: attempt.claimed.workerId })
    await on.engine.run(attempt)
    const ended = await ask(routes.getJob, made)
    expect(ended.headers.get('retry-after')).toBeNull()
    expect(ended.json).toMatchObject({
      status: 'completed',
      result: { bytes: 42 },
      progress: { current: 1, total: 2 },
      results: [{ action: 'read', success: true, error: null, elapsed_seconds: expect.any(Number) }],
      error: null,
    })
    expect((ended.json as { submitted_at: string }).submitted_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  })

  test('an id is taken in either case, with dashes or without', async () => {
    const { job: made } = await submit()
    const dashed = made.job_id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-').toUpperCase()
    expect((await ask(routes.getJob, { job_id: dashed })).json).toEqual(made)
  })

  const ofOneJob = Object.values(routes).filter(({ path }) => path.startsWith('/jobs/{job_id}'))
  test.each(ofOneJob.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s is 404 for what is not there, was deleted, or is no id',
    async (_, route) => {
      const { job: gone } = await submit()
      await on.engine.cancel(gone.job_id)
      await on.engine.delete(gone.job_id)
      for (const jobId of [unknownId, gone.job_id, 'nope', '%00', "'; drop table jobs; --"]) {
        expect(await ask(route, { job_id: jobId }), jobId).toMatchObject({ status: 404, code: 'job_not_found' })
      }
    },
  )

  test('cancel is the cancelled job once, then 409', async () => {
    const { job: made } = await submit()
    const answer = await ask(routes.cancelJob, made)
    expect(answer.json).toMatchObject({ status: 'cancelled', error: 'Cancelled by user', error_code: 'cancelled' })
    const again = await ask(routes.cancelJob, made, { body: {} })
    expect(again).toMatchObject({ status: 409, code: 'job_finished' })
    expect(again.json).toMatchObject({ error: { details: { status: 'cancelled' } } })
    const events = await on.engine.events(made.job_id)
    expect(events.at(-1)).toMatchObject({ event: 'job.cancelled', fields: { by: 'local' } })
  })

  test('DELETE is 409 until it has ended, then 204', async () => {
    const { job: made } = await submit()
    expect(await ask(routes.deleteJob, made)).toMatchObject({ status: 409, code: 'job_unfinished' })
    await on.runAll()
    expect(await ask(routes.deleteJob, made)).toMatchObject({ status: 204, text: '' })
    expect(await on.bed.query(`select fields from fencepost.job_events where event = 'job.deleted'`)).toEqual([
      { fields: { by: 'local' } },
    ])
  })

  test('run-again is 409 until it has failed, then 202 with the job that names it', async () => {
    const { job: made } = await submit('echo', { payload: { a: 1 }, lock_key: 'l', dedup_key: 'd' })
    expect(await ask(routes.runAgain, made)).toMatchObject({ status: 409, code: 'job_not_failed' })
    await on.engine.cancel(made.job_id)
    const answer = await ask(routes.runAgain, made)
    const again = answer.json as z.output<typeof job>
    expect(again).toMatchObject({
      status: 'pending',
      run_again_of: made.job_id,
      payload: { a: 1 },
      submitted_by: 'local',
    })
    expect([answer.headers.get('location'), answer.headers.get('retry-after')]).toEqual([`/jobs/${again.job_id}`, '30'])
    expect((await ask(routes.runAgain, made)).json).toEqual(again)
    expect((await ask(routes.getJob, made)).json).toMatchObject({ status: 'cancelled', run_again_as: again.job_id })
    await on.engine.cancel(again.job_id)
    const { job: holder } = await submit('echo', { payload: {}, lock_key: 'l' })
    expect(await ask(routes.runAgain, made)).toMatchObject({ status: 409, code: 'lock_held' })
    await on.engine.cancel(holder.job_id)
    await submit('echo', { payload: {}, dedup_key: 'd' })
    expect(await ask(routes.runAgain, made)).toMatchObject({ status: 409, code: 'duplicate' })
    await on.engine.setDrain('submissions')
    expect(await ask(routes.runAgain, made)).toMatchObject({ status: 503, code: 'drained' })
  })

  test('recover is 409 for what is not stuck, and puts back what is', async () => {
    const { job: made } = await submit()
    expect(await ask(routes.recoverJob, made)).toMatchObject({ status: 409, code: 'job_not_running' })
    await claimOne(on.engine)
    const young = await ask(routes.recoverJob, made)
    expect(young).toMatchObject({ status: 409, code: 'job_not_stale' })
    expect(young.json).toMatchObject({ error: { details: { stale_ms: 1_800_000 } } })
    await on.bed.advance(1_800_001)
    const answer = await ask(routes.recoverJob, made)
    expect(answer.json).toMatchObject({ status: 'pending', attempts: 0 })
    const { job: parent } = await submit('fan', { payload: { children: 1 }, priority: -1 })
    await on.engine.run(await claimOne(on.engine))
    expect(await ask(routes.recoverJob, parent)).toMatchObject({ status: 409, code: 'job_waiting' })
  })

  test('children and explain', async () => {
    const { job: parent } = await submit('fan', { payload: { children: 3 } })
    const explained = await ask(routes.explainJob, parent)
    expect(explained.json).toMatchObject({ status: 'pending', reasons: [{ reason: 'no_worker', operation: fan.name }] })
    await on.engine.run(await claimOne(on.engine))
    const children = (await ask(routes.jobChildren, parent, { search: '?limit=2' })).json as { job_id: string }[]
    expect(children).toMatchObject([{ parent_job_id: parent.job_id }, { parent_job_id: parent.job_id }])
    const rest = await ask(routes.jobChildren, parent, { search: `?after=${children[1]?.job_id}&status=pending` })
    expect(rest.json).toHaveLength(1)
    expect((await ask(routes.getJob, parent)).json).toMatchObject({ children: { total: 3, completed: 0, failed: 0 } })
    expect((await ask(routes.explainJob, parent)).json).toMatchObject({
      reasons: [{ reason: 'waiting_for_children', ended: 0, total: 3 }],
    })
    expect(await ask(routes.jobChildren, parent, { search: '?operation=echo' })).toMatchObject({ status: 400 })
  })

  test('events are a list, in pages', async () => {
    const { job: made } = await submit('resize', { payload: { image: 'e' } })
    await on.runAll()
    const all = (await ask(routes.jobEvents, made)).json as { id: string; event: string }[]
    expect(all.map(({ event }) => event)).toEqual(['job.submitted', 'job.started', 'resize.read', 'job.completed'])
    const search = `?after=${all[0]?.id}&limit=2`
    expect((await ask(routes.jobEvents, made, { search })).json).toEqual(all.slice(1, 3))
    expect(await ask(routes.jobEvents, made, { search: '?after=x' })).toMatchObject({ status: 400 })
  })

  test('events of an ended job as a stream end with stream.closed', async () => {
    const { job: made } = await submit()
    await on.runAll()
    const answer = await on.http('GET', `/jobs/${made.job_id}/events`, { headers: { accept: 'text/event-stream' } })
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect([...answer.text.matchAll(/^event: (.*)$/gm)].map(([, event]) => event)).toEqual([
      'job.submitted',
      'job.started',
      'job.completed',
      streamClosedEvent,
    ])
    const bad = { headers: { accept: 'text/event-stream', 'last-event-id': 'x' } }
    expect(await ask(routes.jobEvents, made, bad)).toMatchObject({ status: 400 })
  })
})

describe('pipelines', () => {
  test('are read, aborted once, and 404 where there is none', async () => {
    const pipelineId = '1'.repeat(32)
    await submit('echo', { payload: {}, pipeline_id: pipelineId })
    const at = { pipeline_id: pipelineId }
    expect((await ask(routes.getPipeline, at)).json).toMatchObject({ status: 'running', jobs: [{ status: 'pending' }] })
    expect((await ask(routes.abortPipeline, at)).json).toMatchObject({
      status: 'failed',
      jobs: [{ status: 'cancelled' }],
    })
    expect(await ask(routes.abortPipeline, at)).toMatchObject({ status: 409, code: 'nothing_to_abort' })
    for (const route of [routes.getPipeline, routes.abortPipeline]) {
      for (const id of [unknownId, 'x']) {
        expect(await ask(route, { pipeline_id: id })).toMatchObject({ status: 404, code: 'pipeline_not_found' })
      }
    }
  })
})

describe('the service', () => {
  test('lists its operations with the schemas of their payloads', async () => {
    const operations = (await ask(routes.listOperations)).json as { name: string }[]
    expect(operations.map(({ name }) => name)).toEqual(['echo', 'resize', 'failing', 'fan'])
    expect(operations.find(({ name }) => name === resize.name)).toMatchObject({
      queue: 'default',
      payload_schema: { type: 'object', properties: { image: { type: 'string' } }, required: ['image'] },
    })
  })

  test('lists workers', async () => {
    expect((await ask(routes.listWorkers)).json).toEqual([])
    const stop = new AbortController()
    const worker = on.bed
      .open({ workerId: 'w1', operations: [echo] })
      .then((engine) => engine.work({ signal: stop.signal }))
    await expect
      .poll(async () => (await ask(routes.listWorkers)).json)
      .toMatchObject([{ worker_id: 'w1', lost: false }])
    stop.abort()
    await worker
  })

  test('pauses and resumes queues', async () => {
    const name = 'default'
    expect((await ask(routes.pauseQueue, { name })).json).toMatchObject({ queue: name, paused_by: 'local' })
    expect((await ask(routes.listQueues)).json).toMatchObject([{ queue: name, paused_by: 'local' }])
    expect((await ask(routes.resumeQueue, { name })).json).toEqual({ queue: name, paused_at: null, paused_by: null })
    for (const route of [routes.pauseQueue, routes.resumeQueue]) {
      expect(await ask(route, { name: 'No Queue' })).toMatchObject({ status: 404, code: 'queue_not_found' })
    }
  })

  test('drains and stops draining', async () => {
    expect((await ask(routes.getDrain)).json).toEqual({ level: 'off', updated_at: null, updated_by: null })
    const set = await ask(routes.setDrain, {}, { body: { level: 'all' } })
    expect(set.json).toMatchObject({ level: 'all', updated_by: 'local' })
    expect((await ask(routes.getDrain)).json).toEqual(set.json)
    expect(await ask(routes.setDrain, {}, { body: { level: 'some' } })).toMatchObject({ status: 400 })
    expect(await ask(routes.setDrain)).toMatchObject({ status: 400 })
  })

  test('says that it lives and is ready', async () => {
    expect((await ask(routes.healthz)).json).toMatchObject({ status: 'ok' })
    expect((await ask(routes.readyz)).json).toMatchObject({ status: 'ready' })
    await on.bed.query(`insert into fencepost.migrations (version, name) values (9999, 'from the future')`)
    try {
      const answer = await ask(routes.readyz)
      expect(answer).toMatchObject({ status: 503, code: 'not_ready' })
      expect(answer.headers.get('retry-after')).toBe('5')
    } finally {
      await on.bed.query('delete from fencepost.migrations where version = 9999')
    }
  })

  test('describes itself', async () => {
    expect((await ask(routes.openapi)).json).toMatchObject({ openapi: '3.1.0' })
    expect((await ask(routes.docs)).text).toContain('/jobs/{job_id}/cancel')
    expect((await ask(routes.root)).text).toContain('href="docs"')
  })
})

test('every status of the table was answered, but for what has a test of its own', () => {
  // access.test.ts, hostile.test.ts, events.test.ts and turns.test.ts make these happen.
  const elsewhere = new Set([
    'token_missing',
    'token_invalid',
    'role_insufficient',
    'database_unavailable',
    'overloaded',
  ])
  const common = new Set<string>(errorsOf(routes.healthz))
  const body = new Set(['body_too_large', 'media_type_unsupported', 'json_malformed', 'json_too_deep'])
  const rows = Object.values(routes).filter(
    ({ tag, path }) => tag !== 'tokens' && path !== '/events' && path !== '/metrics',
  )
  const missing = rows.flatMap((route: Route) => {
    const seen = answered.get(`${route.method} ${route.path}`) ?? new Set()
    const errors = errorsOf(route).filter((code) => !elsewhere.has(code) && !common.has(code) && !body.has(code))
    return [route.status, ...errors]
      .filter((one) => !seen.has(one))
      .map((one) => `${route.method} ${route.path} ${one}`)
  })
  expect(missing).toEqual([])
})

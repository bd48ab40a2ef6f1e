import { createClient, FencepostApiError, routes, WaitTimeoutError } from '@fencepost/client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { claimOne } from '../../engine/test/bed.ts'
import { openServerBed, type ServerBed } from './server-bed.ts'

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed()
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

test('has a method for every route', () => {
  const named = Object.keys(on.client)
  const streams = { events: 'allEvents' } as Record<string, string>
  expect(Object.keys(routes).filter((name) => !named.includes(streams[name] ?? name))).toEqual([])
})

test('drives jobs through their life', async () => {
  const { client } = on
  const job = await client.submitJob('echo', { payload: { a: 1 }, priority: 5 }, { idempotencyKey: 'k' })
  expect(await client.submitJob('echo', { payload: { a: 1 }, priority: 5 }, { idempotencyKey: 'k' })).toEqual(job)
  expect(await client.getJob(job.job_id)).toEqual(job)
  expect(await client.listJobs({ status: 'pending', limit: 10, include: ['payload', 'result', 'results'] })).toEqual([
    job,
  ])
  expect((await client.explainJob(job.job_id)).reasons).toMatchObject([{ reason: 'no_worker' }])
  expect((await client.cancelJob(job.job_id)).status).toBe('cancelled')
  expect((await client.jobEvents(job.job_id, { limit: 1 })).map(({ event }) => event)).toEqual(['job.submitted'])
  expect(await client.jobChildren(job.job_id)).toEqual([])
  expect(await client.deleteJob(job.job_id)).toBeUndefined()
  expect((await client.setDrain('submissions')).level).toBe('submissions')
  expect((await client.getDrain()).level).toBe('submissions')
  expect(await client.listWorkers()).toEqual([])
  expect((await client.listOperations()).length).toBeGreaterThan(0)
  expect((await client.healthz()).status).toBe('ok')
  expect((await client.readyz()).status).toBe('ready')
  expect(await client.metrics()).toContain('# TYPE fencepost_drain_level gauge')
  expect((await client.openapi()).openapi).toBe('3.1.0')
  expect(await client.docs()).toContain('<!doctype html>')
})

describe('errors', () => {
  test('have the code, the status, the details, and when to come back', async () => {
    const { client } = on
    const job = await client.submitJob('resize', { payload: { image: 'x' } })
    const refused = await client.submitJob('resize', { payload: { image: 'x' } }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(FencepostApiError)
    expect(refused).toMatchObject({ code: 'lock_held', status: 409, details: { job_id: job.job_id }, retryable: false })
    await client.setDrain('all')
    await expect(client.submitJob('echo', { payload: {} })).rejects.toMatchObject({
      code: 'drained',
      retryAfterSeconds: 30,
      retryable: true,
    })
  })

  test('are told apart from a server that is not there, or is not one of ours', async () => {
    await expect(createClient({ url: 'http://127.0.0.1:1' }).healthz()).rejects.toMatchObject({
      code: 'unreachable',
      status: 0,
      retryable: true,
    })
    const silent = createClient({ url: on.url, timeoutMs: 20, fetch: (_, init) => unanswered(init) })
    await expect(silent.healthz()).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/20 ms/),
    })
    await expect(silent.events('0'.repeat(32), { giveUpAfterMs: 0 }).next()).rejects.toMatchObject({
      code: 'unreachable',
    })
    const other = (text: string, status: number) =>
      createClient({ url: 'http://x', fetch: async () => new Response(text, { status }) })
    await expect(other('<html>', 502).healthz()).rejects.toMatchObject({ code: 'answer_unreadable', status: 502 })
    await expect(other('<html>', 200).healthz()).rejects.toMatchObject({ code: 'answer_unreadable' })
    await expect(other('{"a":1}', 200).healthz()).rejects.toMatchObject({ code: 'answer_unreadable' })
  })
})

/** A fetch that is never answered. */
async function unanswered(init: RequestInit | undefined): Promise<Response> {
  return new Promise((_, reject) => {
    init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error))
  })
}

/** A fetch whose streams break off after so many bytes, every time. */
function breaking(afterBytes: number) {
  const counts = { streams: 0 }
  const fetching: typeof fetch = async (...args) => {
    const response = await fetch(...args)
    if (!response.headers.get('content-type')?.startsWith('text/event-stream') || response.body === null)
      return response
    counts.streams += 1
    let left = afterBytes
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.slice(0, left))
        left -= chunk.length
        if (left <= 0) controller.error(new TypeError('terminated'))
      },
    })
    return new Response(response.body.pipeThrough(cut), response)
  }
  return { fetching, counts }
}

describe('events', () => {
  test('are all given once, however often the connection breaks', async () => {
    const { fetching, counts } = breaking(700)
    const client = createClient({ url: on.url, fetch: fetching })
    const { job_id: jobId } = await client.submitJob('echo', { payload: {} })
    const attempt = await claimOne(on.engine)
    for (let nth = 0; nth < 10; nth += 1) await attempt.emit('echo.tick', { fields: { nth } })
    await on.engine.complete(attempt, {})
    const seen = []
    for await (const event of client.events(jobId)) seen.push(event)
    expect(seen).toEqual(await client.jobEvents(jobId))
    expect(counts.streams).toBeGreaterThan(3)
  })

  test('begin after a given one, and end with the signal', async () => {
    const job = await on.client.submitJob('echo', { payload: {} })
    const [first] = await on.client.jobEvents(job.job_id)
    const attempt = await claimOne(on.engine)
    const stop = new AbortController()
    const seen = []
    for await (const event of on.client.events(job.job_id, { after: first?.id, signal: stop.signal })) {
      seen.push(event.event)
      if (seen.length === 1) await attempt.emit('echo.now')
      else stop.abort()
    }
    expect(seen).toEqual(['job.started', 'echo.now'])
  })

  test('of all jobs come live', async () => {
    const stop = new AbortController()
    const seen: string[] = []
    const events = on.client.allEvents({ signal: stop.signal })
    const reading = (async () => {
      for await (const event of events) {
        seen.push(event.event)
        if (event.event === 'job.cancelled') stop.abort()
      }
    })()
    // The first job may be there before the viewer; those after it are not.
    await expect
      .poll(async () => {
        const job = await on.client.submitJob('echo', { payload: {} })
        await on.client.cancelJob(job.job_id)
        return stop.signal.aborted
      })
      .toBe(true)
    await reading
    expect(seen).toContain('job.cancelled')
  })

  test('go on over a new connection when nothing comes over the first, not even a ping', async () => {
    const { job_id: jobId } = await on.client.submitJob('echo', { payload: {} })
    let streams = 0
    const client = createClient({
      url: on.url,
      fetch: async (input, init) => {
        streams += 1
        return streams === 1 ? new Response(new ReadableStream()) : fetch(input, init)
      },
    })
    const events = client.events(jobId, { idleMs: 500 })
    const { value: first } = await events.next()
    await events.return()
    expect(first?.event).toBe('job.submitted')
    expect(streams).toBeGreaterThan(1)
  })

  test('of a job that is not there are refused', async () => {
    const none = on.client.events('0'.repeat(32))
    await expect(none.next()).rejects.toMatchObject({ code: 'job_not_found' })
  })
})

describe('waitFor', () => {
  test('resolves with the job when it has ended, by its events', async () => {
    const job = await on.client.submitJob('echo', { payload: { a: 1 } })
    const waiting = on.client.waitFor(job.job_id)
    const attempt = await claimOne(on.engine)
    await on.engine.run(attempt)
    expect(await waiting).toMatchObject({ status: 'completed', result: { a: 1 } })
    expect((await on.client.waitFor(job.job_id)).status).toBe('completed')
  })

  test('asks again after as long as it is told, where it cannot stream', async () => {
    const asked: number[] = []
    const { job_id: jobId } = await on.client.submitJob('echo', { payload: {} })
    const client = createClient({
      url: on.url,
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        asked.push(performance.now())
        if (asked.length === 2) await on.runAll()
        const headers = new Headers(response.headers)
        if (headers.has('retry-after')) headers.set('retry-after', '0.2')
        return new Response(response.body, { status: response.status, headers })
      },
    })
    expect(await client.waitFor(jobId, { poll: true })).toMatchObject({ status: 'completed' })
    expect(asked).toHaveLength(3)
    expect((asked[2] ?? 0) - (asked[0] ?? 0)).toBeGreaterThan(390)
  })

  test('polls where streams are refused', async () => {
    const job = await on.client.submitJob('echo', { payload: {} })
    const client = createClient({
      url: on.url,
      fetch: async (input, init) => {
        const accepts = new Headers(init?.headers).get('accept')
        if (accepts === 'text/event-stream') {
          await on.runAll()
          return new Response('no streams here', { status: 406 })
        }
        const response = await fetch(input, init)
        const headers = new Headers(response.headers)
        if (headers.has('retry-after')) headers.set('retry-after', '0.01')
        return new Response(response.body, { status: response.status, headers })
      },
    })
    expect(await client.waitFor(job.job_id)).toMatchObject({ status: 'completed' })
  })

  test('goes on by events after the server was restarted', async () => {
    const first = await on.open()
    const job = await on.client.submitJob('echo', { payload: {} })
    const waiting = createClient({ url: first.url }).waitFor(job.job_id, { timeoutMs: 20_000 })
    await expect.poll(() => createClient({ url: first.url }).metrics()).toMatch(/^fencepost_http_streams 1$/m)
    await first.close()
    await on.open({ port: first.port })
    await on.runAll()
    expect(await waiting).toMatchObject({ status: 'completed' })
  })

  test('reads the events once, however often it looks at the job meanwhile', async () => {
    const { job_id: jobId } = await on.client.submitJob('echo', { payload: {} })
    const asked: string[] = []
    const client = createClient({
      url: on.url,
      fetch: async (input, init) => {
        asked.push(new Headers(init?.headers).get('accept') ?? '')
        return fetch(input, init)
      },
    })
    const waiting = client.waitFor(jobId, { lookEveryMs: 10 })
    await expect.poll(() => asked.length).toBeGreaterThan(4)
    await on.runAll()
    expect(await waiting).toMatchObject({ status: 'completed' })
    expect(asked.filter((accept) => accept === 'text/event-stream')).toHaveLength(1)
  })

  test('throws what is wrong with the stream, unless the server refuses it', async () => {
    const { job_id: jobId } = await on.client.submitJob('echo', { payload: {} })
    const client = createClient({
      url: on.url,
      fetch: async (input, init) =>
        new Headers(init?.headers).get('accept') === 'text/event-stream'
          ? new Response('event: job.started\ndata: {"unknown": true}\n\n')
          : fetch(input, init),
    })
    await expect(client.waitFor(jobId)).rejects.toMatchObject({ name: 'ZodError' })
  })

  test('gives up when told to, and for a job that is not there', async () => {
    const job = await on.client.submitJob('echo', { payload: {} })
    await expect(on.client.waitFor(job.job_id, { timeoutMs: 50 })).rejects.toBeInstanceOf(WaitTimeoutError)
    const stop = AbortSignal.abort(new Error('enough'))
    await expect(on.client.waitFor(job.job_id, { signal: stop })).rejects.toThrow('enough')
    await expect(on.client.waitFor('0'.repeat(32))).rejects.toMatchObject({ code: 'job_not_found' })
  })
})

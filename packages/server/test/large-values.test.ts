import { createClient, jobSummary, type JobValue } from '@fencepost/client'
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { claimOne, submitted } from '../../engine/test/bed.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'

/*
 * What callers can make the server read: a few values that are as large as they may be must not become one answer that is
 * larger than all memory.
 */

const maxAnswerBytes = 100_000
let on: ServerBed
beforeAll(async () => {
  on = await openServerBed({ maxAnswerBytes })
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

// One that Postgres cannot compress, and one that it stores a hundred times smaller than it is.
const noise = (bytes: number) => randomBytes(bytes / 2).toString('hex')
const zeros = (bytes: number) => '0'.repeat(bytes)
const submit = (payload: object, options = {}) => submitted(on.engine.submit(echo, payload, options))
const bytesOf = (text: string) => Buffer.byteLength(text)
const idsOf = (json: unknown) => (json as { job_id: string }[]).map((job) => job.job_id)

/** Every page of a list, by its header, and what each of them was like. */
async function pagesOf(path: string) {
  const pages: { ids: string[]; bytes: number; text: string }[] = []
  let after: string | null = null
  do {
    const answer = await on.http(
      'GET',
      `${path}${after === null ? '' : `${path.includes('?') ? '&' : '?'}after=${after}`}`,
    )
    expect(answer.status).toBe(200)
    const jobs = Array.isArray(answer.json) ? answer.json : (answer.json as { jobs: unknown }).jobs
    pages.push({ ids: idsOf(jobs), bytes: bytesOf(answer.text), text: answer.text })
    after = answer.headers.get('next-after')
  } while (after !== null)
  return pages
}

describe('lists', () => {
  test('hold no payload, result or results unless they are asked for', async () => {
    const jobId = await submit({ text: noise(1000) })
    await on.runAll()
    const plain = await on.http('GET', '/jobs')
    expect(z.array(jobSummary.strict()).parse(plain.json)).toMatchObject([{ job_id: jobId, status: 'completed' }])
    for (const value of ['payload', 'result', 'results']) expect(plain.json).not.toHaveProperty(`0.${value}`)
    const asked = await on.http('GET', '/jobs?include=payload,results')
    expect(asked.json).toMatchObject([{ payload: { text: expect.any(String) }, results: null }])
    expect(asked.json).not.toHaveProperty('0.result')
    expect((await on.http('GET', '/jobs?include=result')).json).toMatchObject([
      { result: { text: expect.any(String) } },
    ])
    for (const search of ['include=', 'include=error', 'include=payload,', 'include=payload&include=result']) {
      const answer = await on.http('GET', `/jobs?${search}`)
      expect([answer.status, search]).toEqual([search.includes('&') ? 200 : 400, search])
    }
  })

  test.each([
    ['that cannot be compressed', noise],
    ['that is stored a hundred times smaller', zeros],
  ])('of jobs with a payload %s end before the answer is too large, and go on where they ended', async (_, make) => {
    const sent: string[] = []
    for (let nth = 0; nth < 9; nth += 1) sent.unshift(await submit({ text: make(30_000) }))
    const pages = await pagesOf('/jobs?include=payload')
    expect(pages.flatMap(({ ids }) => ids)).toEqual(sent)
    expect(pages.map(({ ids }) => ids.length)).toEqual([3, 3, 3])
    for (const { bytes } of pages) expect(bytes).toBeLessThanOrEqual(maxAnswerBytes)
    // Without values they are one page, and say so.
    expect(await pagesOf('/jobs')).toMatchObject([{ ids: sent }])
  })

  test('hold one job however large it is, and count results and errors too', async () => {
    const large = await submit({ text: zeros(150_000) })
    await on.runAll()
    const failed: string[] = []
    for (let nth = 0; nth < 15; nth += 1) {
      failed.unshift(await submit({}, { maxAttempts: 1 }))
      await on.engine.fail(await claimOne(on.engine), new Error(zeros(9_000)))
    }
    const pages = await pagesOf('/jobs?include=result')
    expect(pages.flatMap(({ ids }) => ids)).toEqual([...failed, large])
    expect(pages.at(-1)).toMatchObject({ ids: [large] })
    const withoutValues = await pagesOf('/jobs?status=failed')
    expect(withoutValues.length).toBeGreaterThan(1)
    for (const { bytes } of withoutValues) expect(bytes).toBeLessThanOrEqual(maxAnswerBytes)
  })

  test('of children and of pipelines are paged the same way', async () => {
    const pipelineId = '3'.repeat(32)
    const sent: string[] = []
    for (let nth = 0; nth < 4; nth += 1) sent.push(await submit({ text: noise(40_000) }, { pipelineId }))
    const pages = await pagesOf(`/pipelines/${pipelineId}?include=payload`)
    expect(pages.map(({ ids }) => ids)).toEqual([sent.slice(0, 2), sent.slice(2)])
    expect(await pagesOf(`/pipelines/${pipelineId}?limit=3`)).toMatchObject([
      { ids: sent.slice(0, 3) },
      { ids: sent.slice(3) },
    ])
    await on.runAll()
    const parent = await submitted(on.engine.submit('fan', { children: 5 }))
    await on.engine.run(await claimOne(on.engine))
    const children = await pagesOf(`/jobs/${parent}/children?limit=2`)
    expect(children.map(({ ids }) => ids.length)).toEqual([2, 2, 1])
    expect((await on.http('GET', `/pipelines/${pipelineId}?limit=1`)).json).toMatchObject({ status: 'completed' })
  })

  test('of events end before the answer is too large, as a list and on a stream', async () => {
    const jobId = await submit({})
    const attempt = await claimOne(on.engine)
    for (let nth = 0; nth < 8; nth += 1) await attempt.emit('echo.read', { fields: { nth, text: zeros(60_000) } })
    await on.engine.complete(attempt, {})
    const seen: string[] = []
    let after: string | null = '0'
    while (after !== null) {
      const answer = await on.http('GET', `/jobs/${jobId}/events?after=${after}`)
      expect(bytesOf(answer.text)).toBeLessThanOrEqual(maxAnswerBytes)
      seen.push(...(answer.json as { event: string }[]).map(({ event }) => event))
      after = answer.headers.get('next-after')
    }
    const all = ['job.submitted', 'job.started', ...Array.from({ length: 8 }, () => 'echo.read'), 'job.completed']
    expect(seen).toEqual(all)
    const streamed: string[] = []
    for await (const { event } of on.client.events(jobId)) streamed.push(event)
    expect(streamed).toEqual(all)
  })
})

test('one job has all of its values, however large they are and however many ask', async () => {
  const text = noise(300_000)
  const ids = [await submit({ text }), await submit({ text: 'small' }), await submit({ text: zeros(300_000) })]
  await on.runAll()
  const answers = await Promise.all(Array.from({ length: 30 }, (_, nth) => on.client.getJob(ids[nth % 3] ?? '')))
  for (const [nth, { payload, result, job_id: jobId }] of answers.entries()) {
    expect(jobId).toBe(ids[nth % 3])
    expect(payload).toEqual(result)
    expect((payload as { text: string }).text.length).toBe(nth % 3 === 1 ? 5 : 300_000)
  }
})

test('the client reads page after page', async () => {
  const pipelineId = '4'.repeat(32)
  const sent: string[] = []
  for (let nth = 0; nth < 7; nth += 1) sent.unshift(await submit({ text: noise(30_000) }, { pipelineId }))
  const client = createClient({ url: on.url })
  const read = async (items: AsyncIterable<{ job_id: string }>) => {
    const ids: string[] = []
    for await (const { job_id: id } of items) ids.push(id)
    return ids
  }
  const include: JobValue[] = ['payload']
  expect(await read(client.eachJob({ include }))).toEqual(sent)
  expect(await read(client.eachJob({ limit: 3, operation: 'echo' }))).toEqual(sent)
  expect(await read(client.eachPipelineJob(pipelineId, { limit: 2 }))).toEqual(sent.toReversed())
  const parent = await submitted(on.engine.submit('fan', { children: 3 }, { priority: -1 }))
  await on.engine.run(await claimOne(on.engine))
  expect(await read(client.eachChild(parent, { limit: 1 }))).toHaveLength(3)
  const events: string[] = []
  for await (const { event } of client.eachEvent(parent, { limit: 1 })) events.push(event)
  expect(events).toEqual(['job.submitted', 'job.started', 'job.deferred'])
})

import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Gate, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { FencepostError } from '../errors.ts'
import { operation } from '../operation.ts'

const resize = operation('resize', {
  keys: 'caller',
  payload: z.object({ image: z.string(), size: z.object({ width: z.int() }).optional() }),
  lock: ({ image }) => `image/${image}`,
  queue: 'images',
  maxAttempts: 7,
  run: async () => null,
})
const plain = operation('plain', { payload: z.looseObject({}), run: async () => null })

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [work, resize, plain] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const everything = () => bed.query('select from fencepost.jobs union all select from fencepost.resource_locks')

describe('bad input is refused with a code, and nothing is written', () => {
  const nothing = 'x'
  test.each<[string, () => Promise<unknown>, string, RegExp]>([
    ['an unknown operation', () => bed.engine.submit('rezise', {}), 'operation_unknown', /"rezise"/],
    ['a payload that fails its schema', () => bed.engine.submit('resize', { image: 1 }), 'payload_invalid', /at image/],
    [
      'a payload that fails its schema deep inside',
      () => bed.engine.submit('resize', { image: 'a', size: { width: 'wide' } }),
      'payload_invalid',
      /at size\.width/,
    ],
    ['a negative delay', () => bed.engine.submit(work, {}, { delayMs: -1 }), 'number_invalid', /delayMs is -1/],
    ['no attempts', () => bed.engine.submit(work, {}, { maxAttempts: 0 }), 'number_invalid', /maxAttempts is 0/],
    ['half a priority', () => bed.engine.submit(work, {}, { priority: 0.5 }), 'number_invalid', /priority is 0\.5/],
    [
      'a time that is none',
      () => bed.engine.submit(work, {}, { runAfter: 'soon' }),
      'time_invalid',
      /runAfter is soon/,
    ],
    [
      'two times',
      () => bed.engine.submit(work, {}, { runAfter: new Date(), delayMs: 1 }),
      'options_invalid',
      /runAfter and delayMs/,
    ],
    [
      'a payload over the size limit',
      () => bed.engine.submit(work, { text: nothing.repeat(1_048_576) }),
      'json_too_large',
      /1048587 bytes.*limit is 1048576/,
    ],
    ['an over-long key', () => bed.engine.submit(work, {}, { dedupKey: 'k'.repeat(513) }), 'key_invalid', /513 char/],
    ['an empty key', () => bed.engine.submit(work, {}, { lockKey: '' }), 'key_invalid', /lock key is empty/],
    [
      'a key with a null character',
      () => bed.engine.submit(work, {}, { slotKey: 'a\u0000' }),
      'key_invalid',
      /slot key/,
    ],
    ['a null character', () => bed.engine.submit(work, { text: 'a\u0000b' }), 'json_invalid', /\\u0000/],
    ['half a surrogate pair', () => bed.engine.submit(work, { text: '\ud800' }), 'json_invalid', /\\ud800/],
    ['a bigint', () => bed.engine.submit(work, { n: 1n }), 'json_invalid', /BigInt/],
    ['an invalid pipeline id', () => bed.engine.submit(work, {}, { pipelineId: 'p' }), 'id_invalid', /"p".*pipeline/],
    ['an invalid queue', () => bed.engine.submit(work, {}, { queue: 'No' }), 'operation_invalid', /"No"/],
    ['an invalid job id', () => bed.engine.get('not-an-id'), 'id_invalid', /"not-an-id".*job id/],
    [
      'one bad item of many',
      () => bed.engine.submitMany(work, [{ payload: {} }, { payload: { n: 1n } }]),
      'json_invalid',
      /BigInt/,
    ],
  ])('%s', async (_, call, code, message) => {
    const error = await call().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(FencepostError)
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string })
    expect(await everything()).toEqual([])
  })

  test('a backslash before u0000 is only text', async () => {
    const jobId = await submitted(bed.engine.submit(work, { text: '\\u0000 \\ud800' }))
    expect((await bed.engine.get(jobId))?.payload).toEqual({ text: '\\u0000 \\ud800' })
  })
})

describe('submit', () => {
  test('what the operation says holds unless the submission says otherwise', async () => {
    const jobId = await submitted(bed.engine.submit(resize, { image: 'a.png' }))
    expect(await bed.engine.get(jobId)).toMatchObject({ queue: 'images', lockKey: 'image/a.png', maxAttempts: 7 })
    const other = await submitted(bed.engine.submit(resize, { image: 'b.png' }, { queue: 'b', maxAttempts: 1 }))
    expect(await bed.engine.get(other)).toMatchObject({ queue: 'b', lockKey: 'image/b.png', maxAttempts: 1 })
  })

  test('no submission replaces a key that the operation makes itself', async () => {
    const refused = { code: 'key_refused', details: { operation: 'resize', key: 'lock' } }
    await expect(bed.engine.submit(resize, { image: 'a.png' }, { lockKey: 'b' })).rejects.toMatchObject(refused)
    const [same] = await bed.engine.submitMany(resize, [
      { payload: { image: 'a.png' }, options: { lockKey: 'image/a.png', slotKey: 's', dedupKey: 'd' } },
    ])
    expect(await bed.engine.get(same?.submitted ? same.jobId : '')).toMatchObject({
      lockKey: 'image/a.png',
      slotKey: 's',
      dedupKey: 'd',
    })
  })

  test.each(['lock', 'slot', 'dedup'])(
    'an operation takes no %s key from submissions unless it says so',
    async (key) => {
      const options = { [`${key}Key`]: 'image/a.png' }
      await expect(bed.engine.submit(plain, {}, options)).rejects.toMatchObject({
        code: 'key_refused',
        message: expect.stringContaining(`${key} key`),
        details: { operation: 'plain', key },
      })
      expect(await everything()).toEqual([])
      expect(() =>
        operation('other', { payload: z.object({}), keys: 'all' as 'caller', run: async () => null }),
      ).toThrow(/keys of other is all/)
    },
  )

  test('a conflict names the holder', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l', dedupKey: 'd' }))
    expect(await bed.engine.submit(work, {}, { lockKey: 'l' })).toEqual({
      submitted: false,
      why: 'locked',
      lockKey: 'l',
      holder: { jobId, attemptId: undefined },
    })
    expect(await bed.engine.submit(work, {}, { dedupKey: 'd' })).toEqual({
      submitted: false,
      why: 'duplicate',
      dedupKey: 'd',
      holder: { jobId },
    })
  })

  test('a dedup key kept out gives back the lock it had taken', async () => {
    await submitted(bed.engine.submit(work, {}, { dedupKey: 'd' }))
    expect(await bed.engine.submit(work, {}, { dedupKey: 'd', lockKey: 'l' })).toMatchObject({ why: 'duplicate' })
    expect(await bed.query('select from fencepost.resource_locks')).toEqual([])
  })

  test('keys are free again when their job has ended', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l', dedupKey: 'd' }))
    await bed.engine.cancel(jobId)
    expect(await bed.engine.submit(work, {}, { lockKey: 'l', dedupKey: 'd' })).toMatchObject({ submitted: true })
  })

  test('many jobs keep their order', async () => {
    const answers = await bed.engine.submitMany(
      work,
      Array.from({ length: 5000 }, (_, n) => ({ payload: { n } })),
    )
    const attempts = await bed.engine.claim({ limit: 5000 })
    expect(attempts.map(({ claimed }) => claimed.payload)).toEqual(answers.map((_, n) => ({ n })))
    expect(attempts.map(({ jobId }) => jobId)).toEqual(answers.map((answer) => 'jobId' in answer && answer.jobId))
  })

  test('ids of later submissions sort later, also within one transaction', async () => {
    const client = new pg.Client({ connectionString: bed.url })
    await client.connect()
    await client.query('begin')
    const ids: string[] = []
    for (let n = 0; n < 50; n += 1) ids.push(await submitted(bed.engine.submit(work, {}, { client })))
    await client.query('commit')
    await client.end()
    expect(ids).toEqual(ids.toSorted())
    expect(ids[0]).toMatch(/^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$/)
  })

  test('inside the caller’s transaction the job exists if that commits', async () => {
    const client = new pg.Client({ connectionString: bed.url })
    await client.connect()
    await client.query('begin')
    const lost = await submitted(bed.engine.submit(work, {}, { client, lockKey: 'l' }))
    expect(await bed.engine.get(lost)).toBeUndefined()
    await client.query('rollback')
    expect(await everything()).toEqual([])
    await client.query('begin')
    const kept = await submitted(bed.engine.submit(work, {}, { client, lockKey: 'l' }))
    await client.query('commit')
    await client.end()
    expect(await bed.engine.get(kept)).toMatchObject({ status: 'pending', lockKey: 'l' })
  })

  test('losing the database is a retryable error and leaves no half-written job', async () => {
    const engine = await bed.open(
      {},
      {
        pausePoint: async ({ statement, processId }) => {
          if (statement === 'submit.jobs') await bed.query('select pg_terminate_backend($1, 5000)', [processId])
        },
      },
    )
    const error = await engine.submit(work, {}, { lockKey: 'l' }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'database_unavailable', retryable: true, details: { applied: 'no' } })
    expect(await everything()).toEqual([])
  })
})

test('a job submitted alone is committed before its wake-up, which nobody waits for', async () => {
  const gate = new Gate()
  const engine = await bed.open({}, { pausePoint: gate.pausePoint })
  const wake = gate.stopAt('wake')
  const jobId = await submitted(engine.submit(work, {}))
  await wake.reached
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending' })
  wake.go()
})

test.each([
  ['every option', { priority: 3, runAfter: '2030-01-01T00:00:00Z', maxAttempts: 2, slotKey: 's', by: 'ann' }],
  ['a pipeline, a queue and a delay', { pipelineId: 'a'.repeat(32), queue: 'other', delayMs: 60_000 }],
])('a job with %s is the same in a transaction of the caller', async (_name, options) => {
  const client = new pg.Client({ connectionString: bed.url })
  await client.connect()
  try {
    const theirs = await bed.engine.get(await submitted(bed.engine.submit(work, { a: [1] }, { ...options, client })))
    const ours = await bed.engine.get(await submitted(bed.engine.submit(work, { a: [1] }, options)))
    const times = 'runAfter' in options ? {} : { runAfter: expect.any(String) as string }
    const own = { ...times, jobId: expect.any(String) as string, submittedAt: expect.any(String) as string }
    expect(theirs).toEqual({ ...ours, ...own })
    await bed.engine.setDrain('submissions')
    expect(await bed.engine.submit(work, {}, { client })).toEqual({ submitted: false, why: 'drained' })
  } finally {
    await client.end()
  }
})

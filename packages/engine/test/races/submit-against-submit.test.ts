import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { completing, submitting } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const locks = async () => (await tableRows(bed)).resource_locks?.map(({ lock_key: key }) => key)

describe('many jobs at once', () => {
  test('one whose lock is held stays out, and is told by whom; the others go in', async () => {
    const holder = await submitted(bed.engine.submit(work, {}, { lockKey: 'b' }))
    const answers = await other.submitMany(work, [
      { payload: { n: 1 }, options: { lockKey: 'a' } },
      { payload: { n: 2 }, options: { lockKey: 'b' } },
      { payload: { n: 3 }, options: { lockKey: 'c' } },
      { payload: { n: 4 } },
    ])
    expect(answers).toMatchObject([
      { submitted: true },
      { submitted: false, why: 'locked', lockKey: 'b', holder: { jobId: holder, attemptId: undefined } },
      { submitted: true },
      { submitted: true },
    ])
    for (const [nth, answer] of answers.entries()) {
      if (answer.submitted) expect(await bed.engine.get(answer.jobId)).toMatchObject({ payload: { n: nth + 1 } })
    }
    expect(await locks()).toEqual(['a', 'b', 'c'])
  })

  test('two that want one lock, or one dedup key: the first of them gets it, and is named to the second', async () => {
    const answers = await other.submitMany(work, [
      { payload: {}, options: { lockKey: 'a' } },
      { payload: {}, options: { lockKey: 'a' } },
      { payload: {}, options: { dedupKey: 'd', lockKey: 'b' } },
      { payload: {}, options: { dedupKey: 'd', lockKey: 'c' } },
    ])
    const [first, , third] = answers
    if (!first?.submitted || !third?.submitted) throw new Error('not submitted')
    expect(answers[1]).toMatchObject({ why: 'locked', holder: { jobId: first.jobId } })
    expect(answers[3]).toMatchObject({ why: 'duplicate', holder: { jobId: third.jobId } })
    expect(await locks()).toEqual(['a', 'b'])
  })

  test('a lock whose first taker is kept out by its dedup key goes to the next job that wants it', async () => {
    const holder = await submitted(bed.engine.submit(work, {}, { dedupKey: 'd' }))
    const answers = await other.submitMany(work, [
      { payload: {}, options: { lockKey: 'a', dedupKey: 'd' } },
      { payload: {}, options: { lockKey: 'a' } },
    ])
    expect(answers).toMatchObject([{ why: 'duplicate', holder: { jobId: holder } }, { submitted: true }])
    expect((await tableRows(bed)).resource_locks).toHaveLength(1)
    expect(await other.claim({ limit: 5 })).toHaveLength(2)
  })

  test('crossing batches of locks and dedup keys all go in once, whatever order they name them in', async () => {
    const names = Array.from({ length: 12 }, (_, n) => `key ${n}`)
    const batch = (engine: Engine, keys: string[], which: 'lockKey' | 'dedupKey') =>
      engine.submitMany(
        work,
        keys.map((key) => ({ payload: {}, options: { [which]: key } })),
      )
    for (const which of ['lockKey', 'dedupKey'] as const) {
      const answers = await Promise.all([
        batch(bed.engine, names, which),
        batch(other, names.toReversed(), which),
        batch(bed.engine, names.toReversed(), which),
        batch(other, names, which),
      ])
      expect(answers.flat().filter((answer) => answer.submitted)).toHaveLength(12)
      await bed.reset()
    }
  })
})

describe.each(['lockKey', 'dedupKey'] as const)(
  'two batches that name the same keys as %s in opposite orders',
  (which) => {
    const clients: pg.Client[] = []
    beforeEach(async () => {
      for (const client of [
        new pg.Client({ connectionString: bed.url }),
        new pg.Client({ connectionString: bed.url }),
      ]) {
        await client.connect()
        await client.query('begin')
        clients.push(client)
      }
      return () => Promise.all(clients.splice(0).map((client) => client.end()))
    })

    test('never deadlock: one gets all the keys, and the other is told so', async () => {
      // The key in the middle is taken: each batch has written what it names before it when it comes to wait.
      const held = await bed.hold(submitting({ [which]: 'm' }))
      const batch = async (client: pg.Client | undefined, keys: readonly string[]) => {
        if (client === undefined) throw new Error('not connected')
        const items = keys.map((key) => ({ payload: {}, options: { [which]: key } }))
        const answers = await other.submitMany(work, items, { client })
        await client.query('commit')
        return answers.filter(({ submitted }) => submitted).length
      }
      const both = Promise.all([batch(clients[0], ['a', 'm', 'z']), batch(clients[1], ['z', 'm', 'a'])])
      await bed.blocked(2)
      await held.rollback()
      expect((await both).toSorted()).toEqual([0, 3])
    })
  },
)

describe.each([
  ['lock', { lockKey: 'k' }, 'locked'],
  ['dedup key', { dedupKey: 'k' }, 'duplicate'],
])('two submissions of one %s', (_name, keys, why) => {
  test('the second waits for the first’s transaction, and is told the holder when that commits', async () => {
    const held = await bed.hold(submitting(keys))
    const late = other.submit(work, {}, keys)
    await bed.blocked()
    await held.commit()
    const [first] = held.value
    if (!first?.submitted) throw new Error('not submitted')
    expect(await late).toMatchObject({ submitted: false, why, holder: { jobId: first.jobId } })
    expect((await tableRows(bed)).live_jobs).toHaveLength(1)
  })

  test('the second waits for the first’s transaction, and gets the key when that rolls back', async () => {
    const held = await bed.hold(submitting(keys))
    const late = other.submit(work, {}, keys)
    await bed.blocked()
    await held.rollback()
    const jobId = await submitted(late)
    expect((await tableRows(bed)).live_jobs).toMatchObject([{ status: 'pending' }])
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending' })
  })

  test('a submission waits for a holder that is completing, and gets the key when that commits', async () => {
    await submitted(bed.engine.submit(work, {}, keys))
    const held = await bed.hold(completing(await claimOne(bed.engine)))
    const late = other.submit(work, {}, keys)
    await bed.blocked()
    await held.commit()
    await submitted(late)
    expect(await other.claim()).toHaveLength(1)
  })

  test('a submission waits for a holder that is completing, and is told the holder when that rolls back', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, keys))
    const held = await bed.hold(completing(await claimOne(bed.engine)))
    const late = other.submit(work, {}, keys)
    await bed.blocked()
    await held.rollback()
    expect(await late).toMatchObject({ submitted: false, why, holder: { jobId } })
  })

  test('of many at once one goes in, and all others name it', async () => {
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, n) => (n % 2 === 0 ? bed.engine : other).submit(work, {}, keys)),
    )
    const [winner, ...more] = answers.filter((answer) => answer.submitted)
    expect(more).toEqual([])
    const others = answers.filter((answer) => !answer.submitted)
    expect(others).toHaveLength(15)
    for (const answer of others) expect(answer).toMatchObject({ why, holder: { jobId: winner?.jobId } })
  })
})

describe('a submission that a dedup key keeps out', () => {
  test('gives back the lock that it had taken', async () => {
    const holder = await submitted(bed.engine.submit(work, {}, { dedupKey: 'd' }))
    const before = await tableRows(bed)
    expect(await other.submit(work, {}, { dedupKey: 'd', lockKey: 'l' })).toEqual({
      submitted: false,
      why: 'duplicate',
      dedupKey: 'd',
      holder: { jobId: holder },
    })
    expect(await tableRows(bed)).toEqual(before)
  })

  test('gives it back to a submission that waits for it', async () => {
    await submitted(bed.engine.submit(work, {}, { dedupKey: 'd' }))
    const held = await bed.hold(submitting({ dedupKey: 'd', lockKey: 'l' }))
    expect(held.value).toMatchObject([{ why: 'duplicate' }])
    const late = other.submit(work, {}, { lockKey: 'l' })
    await bed.blocked()
    await held.commit()
    expect(await late).toMatchObject({ submitted: true })
  })
})

describe('a submission in the caller’s own transaction', () => {
  let client: pg.Client
  beforeEach(async () => {
    client = new pg.Client({ connectionString: bed.url })
    await client.connect()
    await client.query('begin')
    return () => client.end()
  })

  test('exists when that commits, and not when it rolls back', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { client, lockKey: 'l', dedupKey: 'd' }))
    expect(await other.get(jobId)).toBeUndefined()
    expect(await other.claim()).toEqual([])
    await client.query('rollback')
    expect(await tableRows(bed)).toMatchObject({ live_jobs: [], resource_locks: [] })
    await client.query('begin')
    const again = await submitted(bed.engine.submit(work, {}, { client, lockKey: 'l', dedupKey: 'd' }))
    await client.query('commit')
    expect((await claimOne(other)).jobId).toBe(again)
  })

  test('that did not get its lock does not hold up the job that has it', async () => {
    await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    const attempt = await claimOne(other)
    expect(await bed.engine.submit(work, {}, { client, lockKey: 'l' })).toMatchObject({ why: 'locked' })
    // Each of these would wait for the caller if his refused submission had locked the holder's row.
    const renewed = other.renew([attempt]).then(() => 'renewed')
    expect(await Promise.race([renewed, bed.blocked().then(() => 'blocked')])).toBe('renewed')
    const settled = other.complete(attempt).then(() => 'settled')
    expect(await Promise.race([settled, bed.blocked().then(() => 'blocked')])).toBe('settled')
    await client.query('commit')
  })
})

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Gate, openBed, submitted, work, type Bed } from '../../test/bed.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

test('submissions made at the same time share a statement, and each gets its own answer', async () => {
  const gate = new Gate()
  const engine = await bed.open({}, { pausePoint: gate.pausePoint })
  const ids = await Promise.all(
    Array.from({ length: 200 }, (_, n) => submitted(engine.submit(work, { n }, { priority: n % 3 }))),
  )
  expect(gate.seen.filter((statement) => statement === 'submit.jobs')).toHaveLength(1)
  const jobs = await Promise.all(ids.map((id) => bed.engine.get(id)))
  expect(jobs.map((job) => [job?.payload, job?.priority])).toEqual(ids.map((_, n) => [{ n }, n % 3]))
})

test('what comes while statements are under way goes with the next', async () => {
  const gate = new Gate()
  const engine = await bed.open({}, { pausePoint: gate.pausePoint })
  const stopped = [gate.stopAt('submit.jobs')]
  const answers = [engine.submit(work, { n: 1 })]
  await stopped[0]?.reached
  stopped.push(gate.stopAt('submit.jobs'))
  answers.push(engine.submit(work, { n: 2 }))
  await stopped[1]?.reached
  answers.push(engine.submit(work, { n: 3 }), engine.submit(work, { n: 4 }))
  for (const { go } of stopped) go()
  await Promise.all(answers.map(submitted))
  expect(gate.seen.filter((statement) => statement === 'submit.jobs')).toHaveLength(3)
})

test('one that Postgres will not take does not keep out those it came with', async () => {
  await bed.query(`alter table fencepost.live_jobs add constraint no_fives check (payload <> '{"n": 5}')`)
  const answers = await Promise.allSettled([
    bed.engine.submit(work, { n: 1 }),
    bed.engine.submit(work, { n: 5 }),
    bed.engine.submit(work, { n: 2 }),
  ])
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect((await bed.engine.list()).map(({ payload }) => payload)).toEqual([{ n: 2 }, { n: 1 }])
  await bed.query('alter table fencepost.live_jobs drop constraint no_fives')
})

test('while new work is refused, each of them is', async () => {
  await bed.engine.setDrain('submissions')
  const answers = await Promise.all([bed.engine.submit(work, {}), bed.engine.submit(work, {})])
  expect(answers).toEqual([
    { submitted: false, why: 'drained' },
    { submitted: false, why: 'drained' },
  ])
})

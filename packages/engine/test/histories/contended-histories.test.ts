import { afterAll, beforeAll, test } from 'vitest'
import { assertHistories, timeoutMs } from './assert-histories.ts'
import { World } from './world.ts'

// How to run more of them, and how to play a failing one again: assert-histories.ts.

let world: World
beforeAll(async () => {
  world = await World.open()
})
afterAll(() => world.close())

test(
  'the invariants hold in every history of workers, zombies and operators',
  () =>
    assertHistories(world, {
      file: 'packages/engine/test/histories/contended-histories.test.ts',
      weights: {
        submit: 16,
        claim: 18,
        claim_job: 4,
        renew: 6,
        advance: 10,
        complete: 5,
        fail: 5,
        retry_later: 2,
        release: 3,
        defer: 2,
        settle_all: 5,
        let_go: 4,
        chain: 1,
        emit: 3,
        progress: 2,
        record_step: 2,
        run_step: 2,
        transaction: 2,
        cancel: 6,
        recover: 5,
        delete: 1,
        abort_pipeline: 1,
        sweep: 5,
        retain: 1,
        drain: 1,
      },
    }),
  timeoutMs,
)

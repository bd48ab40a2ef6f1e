import { describe } from 'vitest'
import { channelOf } from '../../src/wake.ts'
import type { Bed } from '../bed.ts'
import { conformsAsWakeUp } from './conformance.ts'

const listening = `datname = current_database() and application_name = 'fencepost listen' and query like 'listen%'`

const notify = async ({ query }: Bed, payloads: readonly string[]) => {
  for (const payload of payloads) await query('select pg_notify($1, $2)', [channelOf('fencepost'), payload])
}

describe('wake-ups over Postgres', () => {
  conformsAsWakeUp(
    async () => ({
      engine: {},
      announces: {
        listeners: async ({ query }) => (await query(`select from pg_stat_activity where ${listening}`)).length,
        cut: async ({ query }) => {
          await query(`select pg_terminate_backend(pid) from pg_stat_activity where ${listening}`)
        },
        repeat: async (bed, jobIds) => {
          const wake = JSON.stringify({ kind: 'wake', queue: 'default' })
          await notify(
            bed,
            jobIds.flatMap(() => [wake, wake]),
          )
        },
        rubbish: (bed) =>
          notify(bed, [
            '',
            'null',
            '{',
            '7',
            '"wake"',
            '{"kind":"wake"}',
            '{"kind":"wake","queue":7}',
            '{"kind":"else"}',
          ]),
      },
      close: async () => {},
    }),
    { announces: true },
  )
})

describe('no wake-ups: the poller alone, as behind a transaction pooler', () => {
  conformsAsWakeUp(async () => ({ engine: {}, work: { wakeUp: 'none', pollMs: 50 }, close: async () => {} }), {
    announces: false,
  })
})

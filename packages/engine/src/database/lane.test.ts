import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBed, type Bed } from '../../test/bed.ts'
import { Database } from './database.ts'
import { raw, type Sql } from './sql.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
  await bed.query('create table noted (name text)')
})
afterAll(() => bed.close())

const backend = raw('select pg_backend_pid() as pid')

test('what is sent to a lane runs on one connection, and is answered in order', async () => {
  const lane = bed.database.lane()
  const answered: string[] = []
  const send = async (name: string, statement: Sql) => {
    const [row] = await lane.query<{ pid: number }>(name, statement)
    answered.push(name)
    return row
  }
  const [first, second] = await Promise.all([
    send('first', raw('select pg_backend_pid() as pid, pg_sleep(0.1)::text')),
    send('second', backend),
  ])
  expect(answered).toEqual(['first', 'second'])
  expect(second?.pid).toBe(first?.pid)
  await lane.close()
})

test('each is committed by itself: one that fails takes none of the others with it', async () => {
  const lane = bed.database.lane()
  const answers = await Promise.allSettled([
    lane.query('one', raw(`insert into noted values ('one')`)),
    lane.query('two', raw('select 1 / 0')),
    lane.query('three', raw(`insert into noted values ('three')`)),
  ])
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await bed.query('select name from noted')).toHaveLength(2)
  await lane.close()
})

test('a connection that is cut fails all that was under way on it, and the next statement gets another', async () => {
  const lane = bed.database.lane()
  const [before] = await lane.query<{ pid: number }>('before', backend)
  const answers = await Promise.allSettled([
    lane.query('cut', raw('select pg_terminate_backend(pg_backend_pid())')),
    lane.query('behind', backend),
  ])
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const [after] = await lane.query<{ pid: number }>('after', backend)
  expect(after?.pid).not.toBe(before?.pid)
  await lane.close()
})

test('a connection that Postgres has said goodbye to is used no more, before it is even closed', async () => {
  const lane = bed.database.lane()
  await expect(lane.query('cut', raw('select pg_terminate_backend(pg_backend_pid())'))).rejects.toThrow('cut')
  expect(await lane.query('after', backend)).toHaveLength(1)
  await lane.close()
})

test('a connection that turns out to be one to a server that only reads is left, and closed', async () => {
  const lane = bed.database.lane()
  const [before] = await lane.query<{ pid: number }>('before', backend)
  const readOnly = raw(`do $$ begin raise exception using errcode = 'read_only_sql_transaction'; end $$`)
  await expect(lane.query('write', readOnly)).rejects.toMatchObject({ code: 'database_unavailable' })
  await expect.poll(() => bed.query(`select from pg_stat_activity where pid = ${before?.pid}`)).toHaveLength(0)
  const [after] = await lane.query<{ pid: number }>('after', backend)
  expect(after?.pid).not.toBe(before?.pid)
  await lane.close()
})

test('a lane is closed with its database, and refuses what comes after', async () => {
  const database = new Database({
    url: bed.url,
    schema: 'fencepost',
    maxConnections: 1,
    preparedStatements: true,
    connectTimeoutMs: 10_000,
    answerTimeoutMs: 120_000,
    idleTransactionTimeoutMs: 30_000,
    lockTimeoutMs: 60_000,
    onConnectionError: () => {},
  })
  const lane = database.lane()
  const [row] = await lane.query<{ pid: number }>('before', backend)
  await database.close()
  await expect.poll(() => bed.query(`select from pg_stat_activity where pid = ${row?.pid}`)).toHaveLength(0)
  await expect(lane.query('after', backend)).rejects.toMatchObject({ code: 'engine_closed' })
})

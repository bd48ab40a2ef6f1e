import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Check, Finding, Patient, Session } from '../src/doctor/check.ts'
import { worst } from '../src/doctor/check.ts'
import { permissionsCheck, schemaCheck } from '../src/doctor/schema-checks.ts'
import { clockCheck, connectionsCheck, versionCheck } from '../src/doctor/server-checks.ts'
import { listenCheck, sessionCheck } from '../src/doctor/session-checks.ts'
import { xminCheck } from '../src/doctor/xmin-check.ts'
import { cliBed } from './cli-bed.ts'

const bed = cliBed()
const sessions: pg.Client[] = []
let patient: Patient

beforeAll(async () => {
  patient = { schema: 'fencepost', xminAgeSeconds: 300, session: await connect(), connect }
})
afterAll(() => Promise.all(sessions.map((session) => session.end())))

async function connect(url = bed.database): Promise<pg.Client> {
  const session = new pg.Client({ connectionString: url, application_name: 'a test' })
  await session.connect()
  sessions.push(session)
  return session
}

const examine = (check: Check, more: Partial<Patient> = {}): Promise<Finding> => check.examine({ ...patient, ...more })
/** A session that answers what a server would that is not at hand. */
const answering = (...rows: Record<string, unknown>[]): Session => ({
  query: async <Row>() => ({ rows: rows.splice(0, 1) as Row[] }),
  on: () => {},
  end: async () => {},
})

describe('doctor', () => {
  test('examines everything, and ends with the worst', async () => {
    const { code, lines } = await bed.run(['doctor', '--database', bed.database, '--json'])
    const { state, checks } = lines[0] as { state: string; checks: (Finding & { check: string })[] }
    const states = Object.fromEntries(checks.map((one) => [one.check, one.state]))
    expect(states).toMatchObject({
      database: 'ok',
      version: 'ok',
      schema: 'ok',
      permissions: 'ok',
      clock: 'ok',
      session: 'ok',
      listen: 'ok',
      xmin: 'ok',
      autovacuum: 'ok',
    })
    expect(state).toBe(worst(checks.map((one) => one.state)))
    // The server of the tests gives up durability for speed, unless it is one that somebody has brought.
    expect(code).toBe(states['durability'] === 'warn' ? 8 : 0)
    const said = await bed.run(['doctor', '--database', bed.database])
    expect(said.stdout).toMatch(/^ok {4}database {5}postgres:\/\/.*answers after \d+ ms\.\nok {4}version/)
    expect(said.stdout).not.toContain(decodeURIComponent(new URL(bed.database).password || 'nothing'))
  })

  test('ends with 1 when the database cannot be reached, or has no schema', async () => {
    const nobody = await bed.run(['doctor', '--database', 'postgres://127.0.0.1:9/nothing'])
    expect(nobody).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^fail {2}database .*ECONNREFUSED.*\n +Look at/),
    })
    const noSchema = await bed.run(['doctor', '--database', bed.database, '--schema', 'missing'])
    expect(noSchema).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/fail {2}schema .*\n +Run `fencepost migrate`/),
    })
  })
})

describe('the schema', () => {
  test('may be missing, older or newer', async () => {
    expect(await examine(schemaCheck)).toMatchObject({ state: 'ok' })
    expect(await examine(schemaCheck, { schema: 'missing' })).toMatchObject({ state: 'fail', details: { current: 0 } })
    const at = (current: number) => answering({ there: true }, { current })
    expect(await examine(schemaCheck, { session: at(1) })).toMatchObject({
      state: 'fail',
      advice: expect.stringMatching(/migrate/),
    })
    expect(await examine(schemaCheck, { session: at(999) })).toMatchObject({
      state: 'fail',
      advice: expect.stringMatching(/Update/),
    })
  })

  test('may be closed to the user, or parts of it', async () => {
    const role = 'fencepost_test_doctor'
    await patient.session.query(`drop role if exists ${role}`)
    await patient.session.query(`create role ${role}`)
    const session = await connect()
    await session.query(`set role ${role}`)
    expect(await examine(permissionsCheck, { session })).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/usage on the schema/),
    })
    await patient.session.query(`grant usage on schema fencepost to ${role}`)
    await patient.session.query(`grant select on all tables in schema fencepost to ${role}`)
    expect(await examine(permissionsCheck, { session })).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/lacks delete on/),
    })
    await patient.session.query(`grant all on all tables in schema fencepost to ${role}`)
    await patient.session.query(`grant all on all sequences in schema fencepost to ${role}`)
    expect(await examine(permissionsCheck, { session })).toMatchObject({
      state: 'ok',
      message: `${role} may do all that is needed, but may not run migrations.`,
    })
    expect(await examine(permissionsCheck, { session, schema: 'missing' })).toMatchObject({ state: 'fail' })
    await session.query('reset role')
    await patient.session.query(`drop owned by ${role}`)
    await patient.session.query(`drop role ${role}`)
  })
})

describe('the server', () => {
  test('may be too old', async () => {
    const session = answering({ version: '13.9', number: 130009 })
    expect(await examine(versionCheck, { session })).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/13\.9/),
    })
  })

  test('may have a clock of its own', async () => {
    const session = answering({ ms: String(Date.now() + 60_000) })
    expect(await examine(clockCheck, { session })).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/ahead/),
    })
  })

  test('may be short of connections', async () => {
    const session = answering({ used: 90, most: 97 })
    expect(await examine(connectionsCheck, { session })).toMatchObject({ state: 'warn' })
  })
})

describe('a pooler that gives every transaction another session', () => {
  test('is found out by state that is lost, and by a notification that does not come', async () => {
    const pooler = transactionPooler(2)
    try {
      const connectPooled = async () => pooler.connect()
      const pooled = { session: pooler.connect(), connect: connectPooled }
      expect(await examine(sessionCheck, pooled)).toMatchObject({
        state: 'warn',
        advice: expect.stringMatching(/transaction mode/),
      })
      expect(await examine(listenCheck, pooled)).toMatchObject({
        state: 'warn',
        advice: expect.stringMatching(/transaction mode/),
      })
    } finally {
      await pooler.end()
    }
  })
})

describe('what holds vacuum back', () => {
  test('is named, with its pid and age', async () => {
    const holder = await connect()
    const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
    await holder.query('begin isolation level repeatable read')
    await holder.query('select count(*) from fencepost.workers')
    expect(await examine(xminCheck)).toMatchObject({ state: 'ok' })
    const args = ['doctor', '--database', bed.database, '--xmin-age-seconds', '0', '--json']
    const { checks } = (await bed.run(args)).lines[0] as { checks: (Finding & { check: string })[] }
    expect(checks.find(({ check }) => check === 'xmin')).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/a test \(idle in transaction\), pid \d+, open for \d+ s/),
      advice: expect.stringContaining('pg_terminate_backend'),
      details: { holders: [{ what: 'transaction', pid: rows[0]?.pid, age_seconds: expect.any(Number) }] },
    })
    await holder.query('rollback')
  })

  test('may be a slot or a prepared transaction, or not to be seen', async () => {
    const holders = [
      { what: 'replication_slot', name: 'replica', pid: null, age_seconds: null, xmin_age: 7 },
      { what: 'prepared_transaction', name: 'forgotten', pid: null, age_seconds: 900, xmin_age: 5 },
    ]
    const all = [{ all: false }]
    const session: Session = {
      ...answering(),
      query: async <Row>(text: string) => ({ rows: (text.includes('pg_has_role') ? all : holders) as Row[] }),
    }
    expect(await examine(xminCheck, { session })).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(
        /replication slot replica, 7 transactions old; prepared transaction forgotten, open for 900 s/,
      ),
      advice: expect.stringMatching(/drop_replication_slot.*rollback prepared.*pg_read_all_stats/),
    })
  })
})

/** Sessions that are only lent: outside a transaction every statement gets the next one of the pool. */
function transactionPooler(size: number) {
  const pool = new pg.Pool({ connectionString: bed.database, max: size })
  const connectPooled = (): Session => {
    let lent: pg.PoolClient | undefined
    return {
      query: async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) => {
        const client = lent ?? (await pool.connect())
        const result = await client.query<Row>(text, values)
        if (text === 'begin') lent = client
        else if (lent === undefined || text === 'rollback') {
          lent = undefined
          client.release()
        }
        return result
      },
      on: () => {}, // a pooler passes no notification on
      end: async () => {},
    }
  }
  return { connect: connectPooled, end: () => pool.end() }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createClient, createdToken, token } from '@fencepost/client'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { view } from '../../server/test/viewer.ts'
import { program } from './built-cli.ts'
import { cleanEnv, cliBed } from './cli-bed.ts'

const bed = cliBed()
const module = fileURLToPath(new URL('./programs/operations.ts', import.meta.url))
const nowhere = 'postgres://nobody:secret@127.0.0.1:9/nothing'
const patience = { timeout: 20_000 }
let pool: pg.Pool

beforeAll(() => {
  pool = new pg.Pool({ connectionString: bed.database, max: 2 })
  pool.on('error', () => {}) // the database is dropped at the end
})
afterEach(async () => {
  bed.stopAll()
  for (const relation of ['tokens', 'live_jobs', 'workers']) await pool.query(`delete from fencepost.${relation}`)
})
afterAll(() => pool.end())

const onDatabase = (...args: string[]) => bed.run([...args, '--database', bed.database, '--json'])
const jobOf = async (jobId: string) =>
  (await pool.query('select status, attempts, result from fencepost.jobs where job_id = $1', [jobId]))
    .rows[0] as unknown

describe('up', () => {
  test('tells what runs and what to try, in words and as JSON', async () => {
    const running = bed.start(['up', '--database', bed.database, '--port', '0'])
    const said = await running.said(/Ctrl-C stops it/)
    const url = /API +(http:\S+)/.exec(said)?.[1] ?? ''
    expect(said).toContain(`curl -X POST ${url}/operations/sample_count/jobs`)
    expect(said).toMatch(/Operations +sample_count, sample_flaky, sample_fan_out\n/)
    expect(await createClient({ url }).readyz()).toMatchObject({ status: 'ready' })
    running.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/Stopping.*Stopped\.\n$/s) })
  })

  test.each(['SIGINT', 'SIGTERM'] as const)('gives its jobs back and leaves nothing behind on %s', async (signal) => {
    const { client, running } = await bed.up()
    const { job_id: jobId } = await client.submitJob('sample_count', { payload: { step_ms: 60_000 } })
    await expect.poll(() => jobOf(jobId), patience).toMatchObject({ status: 'running' })
    running.kill(signal)
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
    expect(await jobOf(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect((await pool.query('select from fencepost.workers')).rows).toEqual([])
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends at once on a second %s', async (signal, code) => {
    const args = ['up', '--database', bed.database, '--port', '0', '--module', module, '--grace-ms', '600000']
    const running = bed.start(args)
    const url = /API +(http:\S+)/.exec(await running.said(/Ctrl-C stops it/))?.[1] ?? ''
    const client = createClient({ url })
    const { job_id: jobId } = await client.submitJob('stubborn', { payload: {} })
    await expect
      .poll(async () => (await client.jobEvents(jobId)).map(({ event }) => event), patience)
      .toContain('stubborn.begun')
    running.kill(signal)
    await running.said(/Stopping/)
    running.kill(signal)
    expect((await running.ended).code).toBe(code)
  })

  test('stops when the shell that npm runs it in is ended', async () => {
    // The second command keeps the shell from becoming the program.
    const shell = spawn('sh', ['-c', `"${process.execPath}" "${program}" up --port 0 --json; true`], {
      env: { ...cleanEnv, DATABASE_URL: bed.database, npm_lifecycle_event: 'start' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [line] = (await once(createInterface(shell.stdout), 'line')) as [string]
    const client = createClient({ url: (JSON.parse(line) as { url: string }).url })
    expect(await client.healthz()).toMatchObject({ status: 'ok' })
    const closed = once(shell.stdout, 'close') // when the last process that has it has ended
    shell.kill('SIGTERM')
    await closed
    await expect(client.healthz()).rejects.toMatchObject({ code: 'unreachable' })
    expect((await pool.query('select from fencepost.workers')).rows).toEqual([])
  })

  test('says so when the port is in use', async () => {
    const { url, running } = await bed.up()
    const { port } = new URL(url)
    const second = await bed.run(['up', '--database', bed.database, '--port', port])
    expect(second).toMatchObject({ code: 1, stdout: '' })
    expect(second.stderr).toMatch(new RegExp(`Cannot listen on 127\\.0\\.0\\.1:${port}: .*in use.*\n.*--port`))
    running.kill('SIGTERM')
    expect((await running.ended).code).toBe(0)
  })
})

test.each([
  ['up', 'SIGINT'],
  ['up', 'SIGTERM'],
  ['serve', 'SIGTERM'],
] as const)('%s ends streams with an event and finishes requests on %s', async (command, signal) => {
  const running = bed.start([command, '--database', bed.database, '--port', '0', '--module', 'samples', '--json'])
  const { url } = await running.line<{ url: string }>()
  const client = createClient({ url })
  const { job_id: jobId } = await client.submitJob('sample_count', { payload: {}, delay_ms: 3_600_000 })
  const viewers = await Promise.all([`/jobs/${jobId}/events`, '/events'].map((path) => view(url, path)))
  const blocker = new pg.Client({ connectionString: bed.database })
  onTestFinished(() => blocker.end())
  await blocker.connect()
  await blocker.query('begin; lock table fencepost.idempotency_keys in access exclusive mode')
  const request = client.submitJob(
    'sample_count',
    { payload: {}, delay_ms: 1 },
    { idempotencyKey: `${command}-${signal}` },
  )
  const isBlocked = async () =>
    (await pool.query(`select from pg_locks where relation = 'fencepost.idempotency_keys'::regclass and not granted`))
      .rowCount
  await expect.poll(isBlocked, patience).toBe(1)
  running.kill(signal)
  const reasons = () => viewers.map(({ received }) => received.at(-1)?.data.reason)
  await expect.poll(reasons, patience).toEqual(['shutdown', 'shutdown'])
  await Promise.all(viewers.map((viewer) => viewer.ended))
  await blocker.query('rollback')
  const accepted = await request
  const answeredAt = performance.now()
  expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
  expect(performance.now() - answeredAt).toBeLessThan(8_000) // it does not wait for the client to hang up
  expect(await jobOf(accepted.job_id)).toMatchObject({ status: 'pending' })
})

describe('a database that cannot be reached', () => {
  test.each(['up', 'serve', 'worker --module samples', 'migrate', 'tokens list'])('is told by %s', async (line) => {
    const { code, stdout, stderr } = await bed.run([...line.split(' '), '--database', nowhere])
    expect({ code, stdout }).toEqual({ code: 7, stdout: '' })
    expect(stderr).toMatch(/ECONNREFUSED 127\.0\.0\.1:9.*\n.*--database/)
    expect(stderr).not.toContain('secret')
  })

  test('is told from one that is not there, and from one that refuses the user', async () => {
    const url = new URL(bed.database)
    url.pathname = '/fencepost_test_nothing'
    expect((await bed.run(['migrate', '--database', url.href])).code).toBe(4)
    const role = new URL(bed.database)
    role.username = 'fencepost_nobody'
    expect((await bed.run(['migrate', '--database', role.href])).code).toBe(6)
  })
})

describe('serve', () => {
  test('serves without a worker, and stops on SIGTERM', async () => {
    const running = bed.start(['serve', '--database', bed.database, '--port', '0', '--module', module, '--json'])
    const { url, operations } = await running.line<{ url: string; operations: string[] }>()
    expect(operations).toEqual(['echo', 'isolated', 'failing', 'stubborn'])
    const client = createClient({ url })
    expect(await client.listWorkers()).toEqual([])
    expect((await client.listOperations()).map(({ name }) => name)).toEqual(operations)
    running.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0 })
  })

  test('does not listen where others can reach it unless there is a token', async () => {
    const refused = await bed.run(['serve', '--database', bed.database, '--port', '0', '--host', '0.0.0.0'])
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('fencepost tokens create') })
  })
})

describe('worker', () => {
  const once = (...args: string[]) => onDatabase('worker', '--once', '--module', module, ...args)
  const submitted = async (operation: string) => {
    const running = bed.start(['serve', '--database', bed.database, '--port', '0', '--module', module, '--json'])
    const { url } = await running.line<{ url: string }>()
    const { job_id: jobId } = await createClient({ url }).submitJob(operation, { payload: { a: 1 } })
    running.kill('SIGTERM')
    await running.ended
    return jobId
  }

  test('--once ends with 3 when nothing is due', async () => {
    expect(await once()).toMatchObject({ code: 3, lines: [{ outcome: 'nothing', job_id: null }] })
  })

  test('--once ends with 0 when its job is completed, from a module in TypeScript', async () => {
    const jobId = await submitted('echo')
    expect(await once('--operations', 'failing')).toMatchObject({ code: 3 })
    expect(await once()).toMatchObject({ code: 0, lines: [{ outcome: 'completed', job_id: jobId }] })
    expect(await jobOf(jobId)).toMatchObject({ status: 'completed', result: { a: 1 } })
  })

  test('--once ends with 1 when its job has failed', async () => {
    const jobId = await submitted('failing')
    expect(await once()).toMatchObject({ code: 1, lines: [{ outcome: 'failed', job_id: jobId }] })
  })

  test('runs isolated handlers of a module in TypeScript', async () => {
    const jobId = await submitted('isolated')
    expect(await once()).toMatchObject({ code: 0, lines: [{ outcome: 'completed', job_id: jobId }] })
    expect(await jobOf(jobId)).toMatchObject({ result: { pid: expect.any(Number) } })
  })

  test('works until it is stopped', async () => {
    const running = bed.start([
      'worker',
      '--database',
      bed.database,
      '--module',
      module,
      '--concurrency',
      '3',
      '--json',
    ])
    const { worker_id: workerId } = await running.line<{ worker_id: string }>()
    const registered = async () => (await pool.query('select worker_id, concurrency from fencepost.workers')).rows
    await expect.poll(registered, patience).toEqual([{ worker_id: workerId, concurrency: 3 }])
    running.kill('SIGINT')
    expect((await running.ended).code).toBe(0)
    expect(await registered()).toEqual([])
  })

  test.each([
    ['is not given', undefined, /--module/],
    ['is not there', './missing.ts', /no module \.\/missing\.ts/],
    ['exports no operations', 'empty.ts', /no array named operations/],
    ['is no TypeScript', 'broken.ts', /broken\.ts/],
    ['has types that cannot be stripped', 'enum.ts', /enum/],
  ])('refuses a module that %s', async (_, given, message) => {
    bed.write('empty.ts', 'export const nothing: number = 1\n')
    bed.write('broken.ts', 'export const = 1\n')
    bed.write('enum.ts', 'export enum Colour { red }\n')
    const args = given === undefined ? [] : ['--module', given]
    const refused = await bed.run(['worker', '--database', bed.database, ...args])
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) })
  })
})

test('migrate brings a schema to this release, and says where it stands', async () => {
  const status = () => onDatabase('migrate', '--status', '--schema', 'another')
  expect(await status()).toMatchObject({ code: 1, lines: [{ current: 0, applied: [] }] })
  const [migrated] = (await onDatabase('migrate', '--schema', 'another')).lines as {
    latest: number
    packages: { package: string; current: number; latest: number }[]
    applied: { package: string }[]
  }[]
  expect(migrated?.applied.filter((one) => one.package === 'engine')).toHaveLength(migrated?.latest ?? 0)
  for (const { package: name, latest, current } of migrated?.packages ?? []) {
    expect(current).toBe(latest)
    expect(migrated?.applied.filter((one) => one.package === name)).toHaveLength(latest)
  }
  expect(await status()).toMatchObject({ code: 0, lines: [{ current: migrated?.latest, applied: [] }] })
  const again = await bed.run(['migrate', '--database', bed.database, '--schema', 'another'])
  expect(again.stdout).toMatch(
    `Schema another is at version ${migrated?.latest}; this release works with ${migrated?.latest}.\nIts server part`,
  )
  // A command that only reads does not migrate.
  const refused = await onDatabase('tokens', 'list', '--schema', 'missing')
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('schema_missing') })
})

test('a token needs a name that can be kept', async () => {
  const refused = await onDatabase('tokens', 'create', 'a'.repeat(101))
  expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('name') })
  const first = await onDatabase('tokens', 'create', 'ada')
  expect(first).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('--role admin') })
})

test('a job is watched over a restart of the server', async () => {
  const first = await bed.up()
  const { job_id: jobId } = await first.client.submitJob('sample_count', { payload: { to: 8, step_ms: 250 } })
  const watching = bed.start(['jobs', 'show', jobId, '--watch', '--url', first.url])
  await watching.said(/job\.started/)
  first.running.kill('SIGTERM')
  await first.running.ended
  await bed.up(['--port', new URL(first.url).port])
  const { code, stdout } = await watching.ended
  expect(code).toBe(0)
  expect(stdout).toMatch(/job\.released.*job\.started.*job\.completed.*Status +completed/s)
})

test('tokens are made, listed and revoked, and decide who may do what', async () => {
  await onDatabase('tokens', 'create', 'root', '--role', 'admin')
  const made = createdToken.parse((await onDatabase('tokens', 'create', 'ada', '--role', 'operator')).lines[0])
  const viewer = (await bed.run(['tokens', 'create', 'bob', '--database', bed.database])).stdout.trim()
  const listed = await onDatabase('tokens', 'list')
  const tokens = z.array(token.strict()).parse(listed.lines[0])
  expect(tokens.map(({ name, role }) => [name, role])).toEqual([
    ['root', 'admin'],
    ['ada', 'operator'],
    ['bob', 'viewer'],
  ])
  expect(listed.stdout).not.toContain(made.token)

  const { url, running } = await bed.up()
  const jobs = (...args: string[]) => bed.run([...args, '--url', url])
  expect(await jobs('jobs', 'list')).toMatchObject({ code: 6, stderr: expect.stringContaining('--token') })
  expect((await jobs('jobs', 'list', '--token', viewer)).code).toBe(0)
  expect((await jobs('submit', 'sample_flaky', '--token', viewer)).code).toBe(6)
  const submitted = await bed.run(['submit', 'sample_flaky', '--json'], {
    env: { FENCEPOST_URL: url, FENCEPOST_TOKEN: made.token },
  })
  expect(submitted.lines).toMatchObject([{ submitted_by: 'ada' }])
  expect(await onDatabase('tokens', 'revoke', made.token_id)).toMatchObject({ code: 0 })
  expect((await onDatabase('tokens', 'revoke', made.token_id)).code).toBe(5)
  expect((await onDatabase('tokens', 'revoke', '0'.repeat(12))).code).toBe(4)
  expect((await jobs('jobs', 'list', '--token', made.token)).code).toBe(6)
  running.kill('SIGTERM')
  expect((await running.ended).code).toBe(0)
}, 90_000)

test('tokens are administered over the API, and the last admin stays', async () => {
  const { url, client } = await bed.up()
  const root = await client.createToken({ name: 'root', role: 'admin' })
  const remotely = (...args: string[]) =>
    bed.run(['tokens', ...args, '--remote', '--json', '--url', url], { env: { FENCEPOST_TOKEN: root.token } })
  const eve = createdToken.parse((await remotely('create', 'eve', '--expires-in-days', '1')).lines[0])
  expect(eve).toMatchObject({ created_by: 'root', expires_at: expect.any(String) })
  expect((await remotely('create', 'eve')).code).toBe(5)
  expect((await remotely('revoke', eve.token_id)).code).toBe(0)
  expect((await remotely('list')).lines[0]).toHaveLength(2)
  expect(await onDatabase('tokens', 'revoke', root.token_id)).toMatchObject({ code: 5 })
})

test('up ends with a message when its embedded Postgres has ended', async () => {
  const running = bed.start(['up', '--port', '0', '--directory', 'killed', '--json'])
  await running.line()
  const [pid] = readFileSync(join(bed.directory, 'killed/data/postmaster.pid'), 'utf8').split('\n')
  process.kill(Number(pid), 'SIGKILL')
  const { code, stderr } = await running.ended
  expect(code).toBe(7)
  expect(stderr).toMatch(/embedded_ended.*embedded Postgres in killed has ended.*server\.log/)
}, 60_000)

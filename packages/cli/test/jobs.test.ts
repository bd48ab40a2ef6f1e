import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  drain,
  explanation,
  job,
  jobEvent,
  jobSummary,
  pipeline,
  schedule,
  worker,
  type Client,
  type Job,
} from '@fencepost/client'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { cliBed, type RunOptions } from './cli-bed.ts'

const bed = cliBed()
const absent = '0'.repeat(32)
let url: string
let client: Client

beforeAll(async () => {
  ;({ url, client } = await bed.up())
})

const fencepost = (line: string, options: RunOptions = {}) =>
  bed.run(line.split(' '), { ...options, env: { FENCEPOST_URL: url, ...options.env } })
const submit = (operation: string, payload: unknown = {}, more = {}) =>
  client.submitJob(operation, { payload, ...more })
/** A job that runs until it is cancelled. */
const longJob = () => submit('sample_count', { to: 1000, step_ms: 60_000 })
const delayed = () => submit('sample_count', {}, { delay_ms: 3_600_000 })
const only = <T>(schema: z.ZodType<T>, lines: readonly unknown[]): T => {
  expect(lines).toHaveLength(1)
  return schema.parse(lines[0])
}

test('text of a job cannot steer the terminal', async () => {
  const key = 'red \u001b[31m\nnext \u009b2J'
  const { job_id: jobId } = await submit('sample_count', {}, { lock_key: key, delay_ms: 3_600_000 })
  const { stdout } = await fencepost(`jobs show ${jobId}`)
  expect(stdout).toContain('red \\x1b[31m\\nnext \\x9b2J\n')
  expect((await fencepost(`jobs show ${jobId} --json`)).lines).toMatchObject([{ lock_key: key }])
})

test('an address that is not where the API begins is told as such', async () => {
  const { code, stderr } = await fencepost(`jobs list --url ${url}/elsewhere`)
  expect(code).toBe(4)
  expect(stderr).toMatch(/no such route.*\n.*--url/)
})

describe('submit', () => {
  test('says which job it is, and gives it as JSON', async () => {
    const said = await fencepost('submit sample_flaky --delay-ms 3600000')
    expect(said).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Job [0-9a-f]{32} is submitted\.\n$/) })
    const given = only(job, (await fencepost('submit sample_flaky --delay-ms 3600000 --json')).lines)
    expect(given).toMatchObject({ operation: 'sample_flaky', status: 'pending', payload: {} })
  })

  test('passes every option on', async () => {
    const options =
      '--priority -3 --run-after 2999-01-01T00:00:00Z --max-attempts 7 --queue slow --lock-key l --slot-key s ' +
      `--dedup-key d --pipeline-id ${absent} --json`
    const { lines } = await bed.run(['submit', 'sample_count', '--payload', '{"to": 3}', ...options.split(' ')], {
      env: { FENCEPOST_URL: url },
    })
    expect(only(job, lines)).toMatchObject({
      payload: { to: 3 },
      priority: -3,
      run_after: '2999-01-01T00:00:00.000000Z',
      max_attempts: 7,
      queue: 'slow',
      lock_key: 'l',
      slot_key: 's',
      dedup_key: 'd',
      pipeline_id: absent,
    })
    const again = await fencepost('submit sample_count --lock-key l')
    expect(again).toMatchObject({ code: 5, stderr: expect.stringContaining(only(job, lines).job_id) })
    const inLine = only(job, (await fencepost('submit sample_count --lock-key l --on-locked wait --json')).lines)
    const explained = await fencepost(`jobs explain ${inLine.job_id}`)
    expect(explained.stdout).toContain(`It waits for the lock l, that job ${only(job, lines).job_id} holds.`)
  })

  test('reads the payload from a file or from standard input', async () => {
    bed.write('payload.json', '{"to": 7}')
    const fromFile = await fencepost('submit sample_count --payload @payload.json --delay-ms 3600000 --json')
    expect(only(job, fromFile.lines).payload).toEqual({ to: 7 })
    const fromInput = await fencepost('submit sample_count --payload - --delay-ms 3600000 --json', {
      input: '{"to": 8}',
    })
    expect(only(job, fromInput.lines).payload).toEqual({ to: 8 })
  })

  test('with an idempotency key submits once', async () => {
    const line = 'submit sample_count --delay-ms 3600000 --idempotency-key once --json'
    const [first, second] = [await fencepost(line), await fencepost(line)]
    expect(only(job, second.lines).job_id).toBe(only(job, first.lines).job_id)
  })

  test('with --wait ends as the job ends', async () => {
    const completed = await fencepost('submit sample_flaky --payload {"failures":0} --wait')
    expect(completed.code).toBe(0)
    expect(completed.stdout).toMatch(
      /^Job [0-9a-f]{32} is submitted\.\n.*job\.submitted.*job\.started.*job\.completed.*Status +completed/s,
    )
    const failed = await fencepost('submit sample_flaky --payload {"failures":1} --max-attempts 1 --wait')
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringMatching(/job\.failed.*Status +failed/s) })
  })

  test.each([
    ['no JSON', 'submit sample_count --payload {', 2, /not JSON/],
    ['a payload that is not valid', 'submit sample_count --payload {"unknown":1}', 2, /unknown/],
    ['an operation that is not there', 'submit nothing', 4, /nothing/],
    ['a file that is not there', 'submit sample_count --payload @missing.json', 2, /missing\.json/],
  ])('refuses %s', async (_, line, code, message) => {
    expect(await fencepost(line)).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message) })
  })
})

test('operations lists what the server takes jobs for', async () => {
  const { lines } = await fencepost('operations --json')
  expect(lines[0]).toMatchObject([{ name: 'sample_count', keys: 'caller' }, { name: 'sample_flaky' }, {}])
  expect((await fencepost('operations')).stdout).toMatch(/OPERATION .*\nsample_count +default +3 /)
})

test('events prints the transitions of all jobs as they happen', async () => {
  const running = bed.start(['events', '--follow', '--after', '0', '--json', '--url', url])
  const { job_id: jobId } = await delayed()
  expect(await running.said(new RegExp(`${jobId}.*job\\.submitted`))).toContain(jobId)
  running.kill('SIGTERM')
  await running.ended
})

describe('jobs', () => {
  test('children lists the children of a job', async () => {
    const { job_id: jobId } = await submit('sample_fan_out', { children: 3, step_ms: 0 })
    await client.waitFor(jobId)
    const children = only(z.array(jobSummary), (await fencepost(`jobs children ${jobId} --json`)).lines)
    expect(children.map((one) => one.parent_job_id)).toEqual([jobId, jobId, jobId])
    const page = await fencepost(`jobs children ${jobId} --status completed --limit 1 --json`)
    expect(only(z.array(jobSummary), page.lines)).toHaveLength(1)
  })

  test('list shows jobs newest first, filtered and by pages', async () => {
    const [older, newer] = [await delayed(), await delayed()]
    const all = await fencepost('jobs list --operation sample_count --status pending --limit 2 --json')
    expect(only(z.array(jobSummary), all.lines).map((one) => one.job_id)).toEqual([newer.job_id, older.job_id])
    const next = await fencepost(`jobs list --limit 1 --after ${newer.job_id}`)
    expect(next.stdout).toMatch(new RegExp(`^JOB +OPERATION +STATUS .*\n${older.job_id} +sample_count +pending +0/3`))
    const none = await fencepost(`jobs list --parent ${absent}`)
    expect(none).toMatchObject({ code: 0, stdout: 'No jobs.\n' })
  })

  test('show gives one job, without colours where no terminal is', async () => {
    const { job_id: jobId } = await delayed()
    const said = await fencepost(`jobs show ${jobId}`)
    expect(said.stdout).toMatch(new RegExp(`Job +${jobId}\nOperation +sample_count\nStatus +pending\n`))
    expect(only(job, (await fencepost(`jobs show ${jobId} --json`)).lines).job_id).toBe(jobId)
  })

  test('show --watch follows a job to its end, as JSON once for every change', async () => {
    const { job_id: jobId } = await submit('sample_count', { to: 3, step_ms: 50 })
    const { code, lines } = await fencepost(`jobs show ${jobId} --watch --json`)
    const seen = lines.map((line) => job.parse(line))
    expect(code).toBe(0)
    expect(seen.at(-1)).toMatchObject({ status: 'completed', progress: { current: 3, total: 3 } })
    expect(new Set(seen.map((one) => JSON.stringify(one))).size).toBe(seen.length)
  })

  test('cancel and delete do so once', async () => {
    const { job_id: jobId } = await longJob()
    expect((await fencepost(`jobs delete ${jobId}`)).code).toBe(5)
    expect(only(job, (await fencepost(`jobs cancel ${jobId} --json`)).lines).status).toBe('cancelled')
    expect(await fencepost(`jobs cancel ${jobId}`)).toMatchObject({ code: 5, stdout: '' })
    const deleted = await fencepost(`jobs delete ${jobId} --json`)
    expect(deleted).toMatchObject({ code: 0, lines: [{ job_id: jobId, deleted: true }] })
    expect((await fencepost(`jobs show ${jobId}`)).code).toBe(4)
  })

  test('run-again says which job it is, and refuses one that has not failed', async () => {
    const { job_id: jobId } = await delayed()
    expect((await fencepost(`jobs run-again ${jobId}`)).code).toBe(5)
    await client.cancelJob(jobId)
    const again = only(job, (await fencepost(`jobs run-again ${jobId} --json`)).lines)
    expect(again).toMatchObject({ run_again_of: jobId })
    expect((await fencepost(`jobs show ${jobId}`)).stdout).toMatch(new RegExp(`Run again as +${again.job_id}`))
  })

  test('bulk asks before it acts on all jobs of a filter, and says what it did', async () => {
    const made = [await delayed(), await delayed()]
    await submit('sample_count', {}, { delay_ms: 3_600_000, tags: ['bulk'] })
    expect(await fencepost('jobs bulk cancel --tag bulk')).toMatchObject({ code: 2, stdout: '' })
    const said = await fencepost('jobs bulk cancel --tag bulk --yes')
    expect(said).toMatchObject({ code: 0, stdout: 'The act is completed: 1 done, 0 refused.\n' })
    for (const { job_id: jobId } of made) expect((await client.getJob(jobId)).status).toBe('pending')
  })

  test('recover refuses a job whose claim is young', async () => {
    const { job_id: jobId } = await longJob()
    await expect.poll(async () => (await client.getJob(jobId)).status, { timeout: 20_000 }).toBe('running')
    const refused = await fencepost(`jobs recover ${jobId} --json`)
    expect(refused).toMatchObject({ code: 5, stdout: '' })
    expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'job_not_stale' } })
    await client.cancelJob(jobId)
  })

  test('events prints what there is, or follows to the end', async () => {
    const { job_id: jobId } = await submit('sample_count', { to: 2, step_ms: 50 })
    const followed = await fencepost(`jobs events ${jobId} --follow --json`)
    const events = followed.lines.map((line) => jobEvent.parse(line))
    expect(events.map(({ event }) => event)).toEqual([
      'job.submitted',
      'job.started',
      'sample_count.counted',
      'sample_count.counted',
      'job.completed',
    ])
    const rest = await fencepost(`jobs events ${jobId} --after ${events[2]?.id} --limit 1`)
    expect(rest.stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3} {2}sample_count\.counted {2}2 of 2\n$/)
  })

  test('explain says why a job is not running', async () => {
    const { job_id: jobId } = await delayed()
    const { message, reasons } = only(explanation, (await fencepost(`jobs explain ${jobId} --json`)).lines)
    expect(reasons.map(({ reason }) => reason)).toContain('not_due')
    expect((await fencepost(`jobs explain ${jobId}`)).stdout).toBe(`${message}\n`)
  })

  test.each([
    'show',
    'show --watch',
    'cancel',
    'delete',
    'recover',
    'run-again',
    'events',
    'events --follow',
    'explain',
  ])('%s of a job that is not there ends with 4', async (verb) => {
    const [name = '', ...flags] = verb.split(' ')
    const answer = await fencepost(['jobs', name, absent, ...flags].join(' '))
    expect(answer).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining(absent) })
  })
})

describe('pipelines', () => {
  test('show and abort', async () => {
    const pipelineId = 'a'.repeat(32)
    const { job_id: jobId } = await submit('sample_count', {}, { delay_ms: 3_600_000, pipeline_id: pipelineId })
    const shown = only(pipeline, (await fencepost(`pipelines show ${pipelineId} --json`)).lines)
    expect(shown).toMatchObject({ status: 'running', jobs: [{ job_id: jobId }] })
    const aborted = await fencepost(`pipelines abort ${pipelineId}`)
    expect(aborted).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`${jobId} .* cancelled`)) })
    expect((await fencepost(`pipelines abort ${pipelineId}`)).code).toBe(5)
    expect((await fencepost(`pipelines show ${'b'.repeat(32)}`)).code).toBe(4)
  })
})

test('workers lists them', async () => {
  const [one] = only(z.array(worker), (await fencepost('workers --json')).lines)
  expect(one).toMatchObject({ concurrency: 10, operations: ['sample_count', 'sample_flaky', 'sample_fan_out'] })
  expect((await fencepost('workers')).stdout).toContain(`${one?.worker_id}  `)
})

test('drain says and sets what is refused', async () => {
  expect(only(drain, (await fencepost('drain --json')).lines).level).toBe('off')
  expect(await fencepost('drain submissions')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('submissions'),
  })
  expect(await fencepost('submit sample_count')).toMatchObject({ code: 7, stderr: expect.stringContaining('drain') })
  expect(only(drain, (await fencepost('drain off --json')).lines).level).toBe('off')
  expect(await fencepost('drain everything')).toMatchObject({ code: 2, stderr: expect.stringContaining('submissions') })
})

describe('a server that does not answer', () => {
  test('is told from one that is something else', async () => {
    const nobody = await bed.run(['jobs', 'list', '--url', 'http://127.0.0.1:9'])
    expect(nobody).toMatchObject({ code: 7, stdout: '', stderr: expect.stringContaining('fencepost up') })
    const stranger = createServer((_, response) => response.writeHead(404).end('Not here')).listen(0, '127.0.0.1')
    await once(stranger, 'listening')
    const { port } = stranger.address() as AddressInfo
    const other = await bed.run(['jobs', 'show', absent, '--url', `http://127.0.0.1:${port}`])
    expect(other).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('is the address right?') })
    stranger.close()
    const noAddress = await bed.run(['jobs', 'list', '--url', 'somewhere'])
    expect(noAddress).toMatchObject({ code: 2, stderr: expect.stringContaining('http://host:port') })
  })
})

test('a fan-out completes when its children have', async () => {
  const { lines } = await fencepost('submit sample_fan_out --payload {"children":3,"step_ms":1} --wait --json')
  expect(lines.at(-1)).toMatchObject({
    status: 'completed',
    children: { total: 3, completed: 3, failed: 0 },
  } satisfies Partial<Job>)
})

test('lists go on over as many pages as they take, up to --limit', async () => {
  const pipelineId = 'c'.repeat(32)
  const pool = new pg.Pool({ connectionString: bed.database })
  await pool.query(
    `insert into fencepost.finished_jobs (job_id, operation, queue, payload, status, priority, run_after, attempts,
                                          max_attempts, submitted_at, completed_at, submitted_event_id, pipeline_id)
     select fencepost.new_job_id(now(), nth), 'sample_count', 'many', '{}', 'completed', 0, now(), 1, 3, now(), now(),
            nth, $1
       from generate_series(1, 1050) nth`,
    [pipelineId],
  )
  await pool.end()
  const listed = async (line: string) => only(z.array(jobSummary), (await fencepost(`${line} --json`)).lines).length
  expect(await listed('jobs list --queue many')).toBe(20)
  expect(await listed('jobs list --queue many --limit 1001')).toBe(1001)
  expect(await listed('jobs list --queue many --limit all')).toBe(1050)
  expect(await fencepost('jobs list --limit 0')).toMatchObject({ code: 2, stderr: expect.stringContaining('or all') })
  await submit('sample_count', {}, { delay_ms: 3_600_000, pipeline_id: pipelineId })
  const aborted = only(pipeline, (await fencepost(`pipelines abort ${pipelineId} --json`)).lines)
  expect(aborted.jobs).toHaveLength(1051)
})

describe('schedules', () => {
  test('are set, listed, paused, resumed and deleted', async () => {
    expect((await fencepost('schedules list')).stdout).toBe('No schedules.\n')
    const set = await fencepost('schedules set nightly sample_count --every-ms 3600000 --overlap queue')
    expect(set.stdout).toMatch(/^Schedule nightly is next due at \S+Z\.\n$/)
    expect((await fencepost('schedules list')).stdout).toMatch(/nightly +sample_count +every 3600000 ms +\d{4}-/)
    const listed = z.array(schedule).parse((await fencepost('schedules list --json')).lines[0])
    expect(listed).toMatchObject([{ name: 'nightly', overlap: 'queue', catch_up: 'once' }])
    expect((await fencepost('schedules pause nightly')).stdout).toBe('Schedule nightly is paused.\n')
    expect((await fencepost('schedules list')).stdout).toContain('paused')
    expect((await fencepost('schedules resume nightly')).stdout).toContain('is next due at')
    expect((await fencepost('schedules delete nightly')).stdout).toBe('Schedule nightly is deleted.\n')
    expect(await fencepost('schedules delete nightly')).toMatchObject({ code: 4 })
  })
})

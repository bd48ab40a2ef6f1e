// Loads a real server over loopback with autocannon and says what it takes. `npm run load` runs all parts; a name runs one.
//   submissions: 10,000 with 50 connections: as many jobs in the database as 202 answers
//   restart:     the same while the server is stopped by SIGTERM half-way and started again
//   drain:       the same while drain is turned on and off
//   large:       300 jobs of 1 MB, and 50 callers who list and read them: the memory of the server, before, most and after
//   million:     rates and p99 of submit, get and list, and the cost of /metrics, in a database with a million jobs
// Exits 1 when a job was lost, or one is there that nobody was told of.
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { openEmbeddedPostgres, openEngine, operation } from '@fencepost/engine'
import { createClient } from '@fencepost/client'
import { createToken, runServer } from '@fencepost/server'
import autocannon from 'autocannon'
import pg from 'pg'
import { z } from 'zod'

const [, , part, database, port] = process.argv
const echo = operation('echo', { payload: z.looseObject({}), run: async ({ payload }) => payload })
const amount = 10_000
const connections = 50
const million = 1_000_000
const limits = { rateLimitPerSecond: 1e6, rateLimitBurst: 1e6 }

if (part === 'serve') {
  const engine = await openEngine({ database, operations: [echo] })
  const onListening = (server) => process.send?.({ port: server.port })
  process.exitCode = await runServer({ engine, port: Number(port), ...limits, onListening })
  process.disconnect?.()
} else await main()

async function main() {
  const parts = { submissions, restart, drain, large, million: withMillion }
  for (const [name, run] of Object.entries(parts)) {
    if (part !== undefined && part !== name) continue
    const postgres = await openEmbeddedPostgres({ temporary: true, settings: { max_connections: 100 } })
    const pool = new pg.Pool({ connectionString: postgres.url })
    pool.on('error', () => {}) // the server is stopped while the pool may still hold a connection
    const engine = await openEngine({ database: postgres.url, operations: [echo] })
    const { token } = await createToken(engine.database, { name: 'load', role: 'admin' }, undefined)
    const server = await serve(postgres.url, 0)
    try {
      await run({ name, postgres, pool, engine, token, server })
    } finally {
      await stop(server)
      await engine.close()
      await pool.end()
      await postgres.close()
    }
  }
}

async function submissions(bed) {
  assertNoneLost(bed, await submit(bed), await count(bed))
}

async function restart(bed) {
  let answered = 0
  let restarted = Promise.resolve()
  const onAnswer = () => {
    answered += 1
    if (answered === amount / 2) restarted = startAgain(bed)
  }
  // What broke while nobody listened is sent again; without a key, so that a doubled one would show.
  let accepted = 0
  while (accepted < amount) {
    const result = await submit(bed, onAnswer, Math.max(amount - accepted, connections))
    accepted += result.statusCodeStats['202']?.count ?? 0
    await restarted
  }
  assertNoneLost(bed, { statusCodeStats: { 202: { count: accepted } } }, await count(bed))
}

async function startAgain(bed) {
  await stop(bed.server)
  bed.server = await serve(bed.postgres.url, bed.server.port)
}

async function drain(bed) {
  const client = createClient({ url: bed.server.url, token: bed.token })
  let on = false
  const timer = setInterval(() => {
    on = !on
    void client.setDrain(on ? 'submissions' : 'off')
  }, 200)
  const result = await submit(bed)
  clearInterval(timer)
  assertNoneLost(bed, result, await count(bed))
}

async function large(bed) {
  const { engine, server, token } = bed
  const text = () => randomBytes(500_000).toString('hex')
  for (let nth = 0; nth < 300; nth += 1) await engine.submit(echo, { text: text() })
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.program.pid}/status`, 'utf8'))[1]) / 1024
  const client = createClient({ url: server.url, token })
  const jobs = await client.listJobs({ limit: 300 })
  const before = rss()
  let most = before
  const timer = setInterval(() => (most = Math.max(most, rss())), 50)
  const shots = [
    ['/jobs?limit=300', 2_000],
    ['/jobs?limit=300&include=payload,result,results', 500],
    [`/jobs/${jobs[0].job_id}`, 500],
  ]
  for (const [path, requests] of shots) show(path, await shoot({ ...bed, path, amount: requests }))
  clearInterval(timer)
  const after = rss()
  console.log(
    `memory of the server: ${[before, most, after].map((mb) => Math.round(mb)).join(' → ')} MB (before, most, after)`,
  )
}

async function withMillion(bed) {
  const { pool, server } = bed
  await pool.query(
    `insert into fencepost.live_jobs (job_id, operation, queue, payload, run_after, max_attempts, submitted_at)
     select fencepost.new_job_id(now() - n * interval '1 second', n), 'op_' || n % 10, 'q_' || n % 5,
            jsonb_build_object('n', n), now() - n * interval '1 second', 3, now() - n * interval '1 second'
       from generate_series(1, $1::integer) n`,
    [million / 2],
  )
  await pool.query(
    `insert into fencepost.finished_jobs (job_id, operation, queue, payload, status, priority, run_after, attempts,
                                          max_attempts, submitted_at, started_at, completed_at, submitted_event_id,
                                          started_event_id, completed_event_id, attempt_id, locked_by, locked_at)
     select fencepost.new_job_id(at, n), 'op_' || n % 10, 'q_' || n % 5, jsonb_build_object('n', n), 'completed', 0, at,
            1, 3, at, at, at, nextval('fencepost.event_ids'), nextval('fencepost.event_ids'),
            nextval('fencepost.event_ids'), gen_random_uuid(), 'w', at
       from generate_series(1, $1::integer) n, lateral (select now() - (1000000 - n) * interval '1 second') t (at)`,
    [million / 2],
  )
  await pool.query('vacuum analyze fencepost.live_jobs')
  await pool.query('vacuum analyze fencepost.finished_jobs')
  const { rows } = await pool.query(
    `select replace(job_id::text, '-', '') as id from fencepost.finished_jobs limit 100`,
  )
  const get = async (path) => show(`${path}`, await shoot({ ...bed, path, amount: 5_000 }))
  await get(`/jobs/${rows[0].id}`)
  await get('/jobs?limit=20')
  await get('/jobs?status=failed&limit=20')
  await get(`/jobs?operation=op_3&limit=20&after=${rows[50].id}`)
  await submit(bed)
  const client = createClient({ url: server.url, token: bed.token })
  await client.metrics()
  await get('/metrics')
  for (const text of (await client.metrics()).split('\n'))
    if (text.startsWith('fencepost_metrics_age')) console.log(text)
  const startedAt = performance.now()
  await pool.query(`select queue, operation, count(*) from fencepost.live_jobs group by 1, 2`)
  console.log(`counting the depth takes ${Math.round(performance.now() - startedAt)} ms, in the background`)
}

async function submit(bed, onAnswer = () => {}, requests = amount) {
  const result = await shoot({ ...bed, path: '/operations/echo/jobs', amount: requests, method: 'POST', onAnswer })
  show(`${bed.name}: POST /operations/echo/jobs`, result)
  return result
}

function shoot({ server, token, path, amount: requests, method = 'GET', onAnswer = () => {} }) {
  return new Promise((resolve, reject) => {
    const run = autocannon(
      {
        url: `${server.url}${path}`,
        method,
        connections: Math.min(connections, requests),
        amount: requests,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(method === 'POST' ? { body: JSON.stringify({ payload: { a: 1 } }) } : {}),
      },
      (error, result) => (error ? reject(new Error('autocannon failed', { cause: error })) : resolve(result)),
    )
    run.on('response', () => onAnswer())
  })
}

function show(name, { requests, latency, statusCodeStats, errors, duration }) {
  const statuses = Object.entries(statusCodeStats ?? {}).map(([status, one]) => `${one.count} × ${status}`)
  const rate = Math.round(requests.total / duration)
  console.log(
    `${name}: ${statuses.join(', ')}, ${errors} broken; ${rate}/s, p50 ${latency.p50} ms, p99 ${latency.p99} ms`,
  )
}

async function count({ pool }) {
  const { rows } = await pool.query('select count(*)::integer as n from fencepost.jobs')
  return rows[0].n
}

function assertNoneLost({ name }, { statusCodeStats }, jobs) {
  const accepted = statusCodeStats['202']?.count ?? 0
  const fine = accepted === jobs && accepted > 0
  console.log(`${name}: ${accepted} answers of 202, ${jobs} jobs: ${fine ? 'none lost' : 'LOST OR DOUBLED'}`)
  if (!fine) process.exitCode = 1
}

async function serve(url, onPort) {
  const program = fork(fileURLToPath(import.meta.url), ['serve', url, String(onPort)])
  const [message] = await once(program, 'message')
  return { program, port: message.port, url: `http://127.0.0.1:${message.port}` }
}

async function stop({ program }) {
  if (program.exitCode !== null) return
  program.kill('SIGTERM')
  await once(program, 'exit')
}

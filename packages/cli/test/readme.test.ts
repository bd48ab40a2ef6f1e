import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { errorAnswer, explanation, job, jobSummary, operation, worker } from '@fencepost/client'
import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { root } from './built-cli.ts'
import { cliBed, cleanEnv } from './cli-bed.ts'

// As a reader does it: a server on an embedded Postgres, and the lines of the README pasted into one shell. Only the port
// is another one, because the one of the README may be in use.

const bed = cliBed()
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [start, ...walk] = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block.trim())
const lines = walk.flatMap((block) => block.split('\n'))
const separator = '---- next line ----'
let outputs: Map<string, string>

beforeAll(async () => {
  const running = bed.start(['up', '--port', '0', '--json'])
  const { url } = await running.line<{ url: string }>()
  const standIn = fileURLToPath(new URL('./programs/curl.mjs', import.meta.url))
  const prepare = `command -v curl >/dev/null || curl() { "${process.execPath}" "${standIn}" "$@"; }`
  const script = lines.flatMap((line) => [line, `echo; echo '${separator}'`]).join('\n')
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-c', `${prepare}\n${script.replaceAll('http://127.0.0.1:8080', url)}`],
    {
      cwd: root,
      env: { ...cleanEnv, FENCEPOST_URL: url, FENCEPOST_DIRECTORY: join(bed.directory, '.fencepost/postgres') },
    },
  )
  const printed = stdout.split(separator).map((output) => output.trim())
  outputs = new Map(lines.map((line, nth) => [line, printed[nth] ?? '']))
  running.kill('SIGINT')
  expect((await running.ended).code).toBe(0)
}, 300_000)

const outputOf = (part: string) => {
  const found = lines.filter((line) => line.includes(part))
  expect(found, part).toHaveLength(1)
  return outputs.get(found[0] ?? '') ?? ''
}
const jsonOf = <T>(part: string, schema: z.ZodType<T>) => schema.parse(JSON.parse(outputOf(part)))

test('the README begins with what starts everything', () => {
  expect(start).toBe('npm ci && npm start')
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  expect(scripts).toMatchObject({ prestart: 'npm run --silent build', start: 'fencepost up' })
})

test('no line of the walk is answered with an error', () => {
  expect(lines.length).toBeGreaterThan(10)
  for (const [line, output] of outputs) {
    const isJson = /^[[{]/.test(output)
    if (line.includes('rewrite_manifests')) continue // it is said to be refused
    expect(errorAnswer.safeParse(isJson ? JSON.parse(output) : undefined).data, line).toBeUndefined()
    expect(output === '', line).toBe(/^[A-Z]+=/.test(line))
  }
})

test('the lines do what is said about them', () => {
  expect(outputOf('until curl')).toMatch(/^"score":\d/)
  const maintained = jsonOf('rewrite_data_files', job)
  expect(jsonOf('rewrite_manifests', errorAnswer).error).toMatchObject({
    code: 'lock_held',
    details: { job_id: maintained.job_id },
  })
  expect(outputOf('$MAINTENANCE/events')).toMatch(/job\.submitted.*maintenance\.committed.*job\.completed/s)
  expect(jsonOf('curl -s http://127.0.0.1:8080/jobs/$MAINTENANCE', job)).toMatchObject({ status: 'completed' })
  expect(outputOf('tables health')).toMatch(/analytics\.page_views/)
  expect(jsonOf('$ORDERS/cancel', job)).toMatchObject({ operation: 'table_maintenance', status: 'cancelled' })

  expect(jsonOf('curl -s http://127.0.0.1:8080/operations', z.array(operation)).map(({ name }) => name)).toContain(
    'sample_count',
  )
  expect(jsonOf('sample_count/jobs', job)).toMatchObject({ operation: 'sample_count', payload: { to: 5 } })
  expect(jsonOf('curl -s http://127.0.0.1:8080/jobs/$JOB', job).operation).toBe('sample_count')
  expect(outputOf('$JOB/events')).toMatch(/job\.submitted.*sample_count\.counted.*job\.completed.*stream\.closed/s)
  expect(jsonOf('sample_flaky/jobs', job).payload).toEqual({ failures: 2 })
  expect(jsonOf('/children', z.array(jobSummary))).toHaveLength(5)
  expect(jsonOf('/explain', explanation).reasons[0]).toMatchObject({ reason: 'waiting_for_children', total: 5 })
  expect(jsonOf('$PARENT/cancel', job)).toMatchObject({ operation: 'sample_fan_out', status: 'cancelled' })
  expect(jsonOf('status=cancelled', z.array(jobSummary))).toHaveLength(6)
  expect(jsonOf('/workers', z.array(worker))).toHaveLength(1)
  expect(outputOf('/metrics')).toMatch(/^# HELP /m)
  expect(outputOf('npx fencepost jobs list')).toMatch(/^JOB .*\n.* sample_fan_out /s)
  expect(outputOf('npx fencepost submit')).toMatch(/job\.retried.*job\.retried.*Status +completed/s)
  expect(outputOf('npx fencepost doctor')).toMatch(/^ok +database/)
})

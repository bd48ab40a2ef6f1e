import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createClient, type Client } from '@fencepost/client'
import { beforeAll, describe, expect, test } from 'vitest'
import { watchJob } from '../src/jobs/watch.ts'
import { bar, percent } from '../src/output/bar.ts'
import { Output } from '../src/output/output.ts'
import { table } from '../src/output/table.ts'
import { program } from './built-cli.ts'
import { cleanEnv, cliBed } from './cli-bed.ts'

const bed = cliBed()
const escape = '\u001b'
const colours = new RegExp(`${escape}\\[\\d+m`)
let url: string
let client: Client

beforeAll(async () => {
  ;({ url, client } = await bed.up())
})

/** What a command draws on a terminal of 80 columns, and its exit code, which script(1) passes on. */
async function onTerminal(args: string, env: Record<string, string> = {}): Promise<{ code: number; text: string }> {
  const command = `stty cols 80 rows 24; exec ${process.execPath} ${program} ${args}`
  const wrapped =
    process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', command] : ['-qec', command, '/dev/null']
  const options = { env: { ...cleanEnv, TERM: 'xterm', FENCEPOST_URL: url, ...env }, cwd: bed.directory }
  try {
    const { stdout } = await promisify(execFile)('script', wrapped, options)
    return { code: 0, text: stdout }
  } catch (error) {
    const { code, stdout } = error as { code: number; stdout: string }
    return { code, text: stdout }
  }
}

/** What is on the screen in the end: lines that were drawn over are gone. */
function screenOf(text: string): string[] {
  const lines = ['']
  for (const [part] of text.matchAll(
    new RegExp(`${escape}\\[1A|${escape}\\[2K|${escape}\\[\\d*m|\r|\n|[^\r\n${escape}]+`, 'g'),
  )) {
    if (part === '\n') lines.push('')
    else if (part === `${escape}[1A`) lines.pop()
    else if (part === `${escape}[2K`) lines[lines.length - 1] = ''
    else if (part !== '\r' && !part.startsWith(escape)) lines[lines.length - 1] += part
  }
  return lines
}

describe('on a terminal', () => {
  test('--watch draws a bar that grows, below the events as they come', async () => {
    const { job_id: jobId } = await client.submitJob('sample_count', { payload: { to: 20, step_ms: 150 } })
    const { code, text } = await onTerminal(`jobs show ${jobId} --watch`)
    expect(code).toBe(0)
    const drawn = [...text.matchAll(/ +(\d+) % {2}\d+ of 20/g)].map(([, part]) => Number(part))
    expect(drawn).toEqual(drawn.toSorted((a, b) => a - b))
    expect(new Set(drawn).size).toBeGreaterThan(2)
    expect(drawn.at(-1)).toBe(100)
    expect(text).toMatch(colours)
    const screen = screenOf(text)
    const events = screen.flatMap((line) => /^\d\d:\d\d:\d\d\.\d{3} {2}(\S+)/.exec(line)?.[1] ?? [])
    expect(events).toEqual([
      'job.submitted',
      'job.started',
      ...Array.from({ length: 20 }, () => 'sample_count.counted'),
      'job.completed',
    ])
    expect(screen.filter((line) => line.includes('%'))).toEqual([`${'█'.repeat(40)} 100 %  20 of 20`])
    expect(screen.filter((line) => line.startsWith('completed'))).toEqual(['completed  sample_count  attempt 1 of 3'])
    expect(screen.indexOf('Status     completed')).toBeGreaterThan(
      screen.indexOf('completed  sample_count  attempt 1 of 3'),
    )
  })

  test('a job that fails is watched to its end, and ends with 1', async () => {
    const { code, text } = await onTerminal(`submit sample_flaky --payload '{"failures":9}' --max-attempts 1 --wait`)
    expect(code).toBe(1)
    expect(screenOf(text)).toContain('failed  sample_flaky  attempt 1 of 1')
  })

  test('colours come, and go with NO_COLOR or --json', async () => {
    await client.submitJob('sample_count', { payload: {}, delay_ms: 3_600_000 })
    expect((await onTerminal('jobs list')).text).toMatch(colours)
    expect((await onTerminal('jobs list', { NO_COLOR: '1' })).text).not.toMatch(colours)
    expect((await onTerminal('jobs list --json')).text).not.toMatch(colours)
    expect((await onTerminal('jobs nonsense')).text).toMatch(colours)
  })
})

test('a look at the job that fails while events come is no reason to end', async () => {
  const { job_id: jobId } = await client.submitJob('sample_count', { payload: { to: 3, step_ms: 50 } })
  let looks = 0
  const shaky = createClient({
    url,
    fetch: async (input, init) => {
      if (input !== `${url}/jobs/${jobId}`) return fetch(input, init)
      looks += 1
      if (looks === 2) throw new TypeError('fetch failed')
      return fetch(input, init)
    },
  })
  let text = ''
  const sink = { write: (some: string) => (text += some) }
  const output = new Output({ json: false, stdout: sink, stderr: sink, env: {} })
  expect(await watchJob(shaky, jobId, output)).toMatchObject({ status: 'completed' })
  expect(text).toMatch(/job\.submitted.*job\.completed.*Status +completed/s)
})

describe('a bar', () => {
  test.each([
    [0, 4, '░░░░░░░░', '  0 %  0 of 4'],
    [1, 4, '██░░░░░░', ' 25 %  1 of 4'],
    [4, 4, '████████', '100 %  4 of 4'],
    [9, 4, '████████', '100 %  9 of 4'],
    [0, 0, '████████', '100 %  0 of 0'],
    [7, null, '░░░░░░░░', '7'],
  ])('of %i of %s is %s', (current, total, drawn, said) => {
    expect(bar({ current, total }, 8)).toBe(drawn)
    expect(percent({ current, total })).toBe(said)
  })
})

test('a table is as wide as it must be, whatever its colours', () => {
  const green = `${escape}[32mok${escape}[39m`
  expect(table(['A', 'STATE', 'B'], [['long one', green, 'x']])).toBe(`A         STATE  B\nlong one  ${green}     x`)
})

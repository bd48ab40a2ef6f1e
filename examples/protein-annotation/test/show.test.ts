import { execFile, execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { buildFolder } from '../../../packages/engine/test/build-folder.ts'
import { expectGone } from '../../../packages/engine/test/worker/worker-bed.ts'
import { bar, Screen } from '../src/show/screen.ts'

// The program as `npm run example:protein` runs it: built, in a process of its own, on an embedded Postgres.

const root = fileURLToPath(new URL('../../../', import.meta.url))
const program = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const escape = '\u001b'
const { PATH = '', HOME = '', TMPDIR } = process.env
const env = { PATH, HOME, ...(TMPDIR ? { TMPDIR } : {}) }

beforeAll(() => buildFolder('examples/protein-annotation'), 120_000)

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    return { code: 0, ...(await promisify(execFile)(process.execPath, [program, ...args], { env })) }
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string }
  }
}

test('npm run example:protein builds it and runs it', () => {
  const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: Record<string, string> }
  expect(scripts['example:protein']).toBe(
    'tsc -b examples/protein-annotation && node examples/protein-annotation/dist/main.js',
  )
})

test('--help names every option and scene, and the README says the same', async () => {
  const { code, stdout } = await run('--help')
  expect(code).toBe(0)
  const readme = readFileSync(fileURLToPath(new URL('../README.md', import.meta.url)), 'utf8')
  const named = [...stdout.matchAll(/^ {2}(--\w+|[a-z-]+)(?: <\w+>)? {2,}/gm)].map(([, name = '']) => name)
  const scenes = ['annotate', 'busy-gpu', 'retries', 'bad-batch', 'cancel', 'kill']
  expect(named).toEqual(['--scene', '--workers', '--plain', '--help', ...scenes])
  for (const name of named) expect(readme).toContain(`| \`${name}`)
})

test.each([
  [['--scene', 'none'], 'There is no scene none'],
  [['--workers', '1'], '--workers is 1; give a whole number from 2 to 16.'],
  [['--nonsense'], '--nonsense'],
])('%j is refused', async (args, message) => {
  const { code, stderr } = await run(...args)
  expect(code).toBe(2)
  expect(stderr).toContain(message)
})

test('every scene is played, everything holds, and it takes less than a minute', async () => {
  const began = performance.now()
  const { code, stdout } = await run()
  expect(stdout).not.toContain('✗')
  expect(code).toBe(0)
  expect(performance.now() - began).toBeLessThan(60_000)
  expect([...stdout.matchAll(/^━━ .*\((.+)\)$/gm)].map(([, name]) => name)).toEqual([
    'annotate',
    'busy-gpu',
    'retries',
    'bad-batch',
    'cancel',
    'kill',
  ])
  expect(stdout).toContain('✓ 82 of 90 held-out proteins got exactly the terms that they have in truth')
  expect(stdout).toMatch(
    /^✓ fail_when 'any': failed, 1 of 6 children failed: PermanentError: DM0034 cannot be embedded/m,
  )
  expect(stdout).toMatch(/retry_later +the GPU is taken by job [0-9a-f]{32} \(again in 1\.0 s\)$/m)
  expect(stdout).not.toContain(escape)
}, 120_000)

test('Ctrl-C stops it, its workers and its Postgres', async () => {
  const running = spawn(process.execPath, [program, '--scene', 'cancel', '--plain'], { env })
  let text = ''
  running.stdout.setEncoding('utf8').on('data', (some: string) => (text += some))
  await expect.poll(() => text, { timeout: 60_000 }).toContain('job.deferred')
  const started = execFileSync('pgrep', ['-P', String(running.pid)], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(Number)
  expect(started.length).toBeGreaterThanOrEqual(2)
  const ended = new Promise((resolve) => running.once('close', resolve))
  running.kill('SIGINT')
  expect(await ended).toBe(130)
  expect(text).toMatch(/Stopped\.\n$/)
  for (const pid of started) await expectGone(pid)
}, 120_000)

describe('on a terminal', () => {
  test('bars of parents and children are drawn again and again, below the events as they come', async () => {
    const command = `stty cols 100 rows 30; exec ${process.execPath} ${program} --scene retries`
    const wrapped =
      process.platform === 'darwin' ? ['-q', '/dev/null', 'sh', '-c', command] : ['-qec', command, '/dev/null']
    const { stdout } = await promisify(execFile)('script', wrapped, { env: { ...env, TERM: 'xterm' } })
    expect(stdout).toMatch(new RegExp(`${escape}\\[1A${escape}\\[2K`))
    expect(stdout).toMatch(/▸ compute_embeddings k=3 .*█.*\d+ of 23 children/)
    expect(stdout).toMatch(/ {3}embed_batch \d+ /)
    const screen = screenOf(stdout)
    expect(screen.filter((line) => line.startsWith('▸'))).toEqual([]) // when all has ended, the bars are gone
    expect(screen.filter((line) => / job\.completed/.test(line))).toHaveLength(2) // the sample is read, and embedded
    expect(screen.filter((line) => line.length > 100)).toEqual([])
    expect(screen.filter((line) => line.startsWith('✓'))).toHaveLength(2)
  }, 120_000)

  test('a line that is too wide is cut, and no colours are used where they are not wanted', () => {
    let text = ''
    const sink = { isTTY: true, columns: 20, write: (some: string) => (text += some) }
    const screen = new Screen(sink, { plain: false, env: { NO_COLOR: '1' } })
    screen.update([screen.style('red', 'twenty-five letters or so')], ['below'])
    screen.update(['next'], [])
    expect(text).toBe(`twenty-five letter…\nbelow\n${escape}[1A${escape}[2Knext\n`)
  })

  test('a bar is as full as its job', () => {
    expect([bar(0, 4, 8), bar(1, 4, 8), bar(4, 4, 8), bar(0, 0, 8)]).toEqual([
      '░░░░░░░░',
      '██░░░░░░',
      '████████',
      '████████',
    ])
  })
})

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

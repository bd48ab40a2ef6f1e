import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { buildFolder } from '../../../packages/engine/test/build-folder.ts'

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url))

beforeAll(() => buildFolder('examples/carbon-ingest'))

/** Runs the program, with what it has printed so far. */
function run(...args: string[]) {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (some: Buffer) => (output.text += String(some)))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return { child, output, ended }
}

describe('the tour', () => {
  test('shows every scene on an embedded Postgres, and leaves nothing behind', async () => {
    const { output, ended } = run('--rows', '2000')
    expect([await ended, output.text]).toEqual([0, expect.stringContaining('Done in')])
    const { text } = output
    expect(text).toMatch(/6 recalculations each asked for an aggregation; 1 was run/)
    expect(text).toMatch(/(ada|ben): activities-2025.csv was not started: job [0-9a-f]{32}, started by (ada|ben)/)
    expect(text).toMatch(/Its slot \*\/\*\/entries\/csv\/2025 is busy with job/)
    expect(text).toMatch(/The current job of \*\/\*\/entries\/csv\/2025 is that of cyd/)
    expect(text).toMatch(
      /job.started → job.expired → job.started → job.chained → job.completed\n {2}Reports written: 1\./,
    )
    expect(text).toMatch(/ada: job [0-9a-f]{32} is not put back: it was claimed at .*\n {2}ada: .* is put back/)
    expect(text.match(/are those of an independent calculation, to the last digit/g)).toHaveLength(4)
    expect(text).not.toContain('\u001b')
  }, 120_000)

  test('stops at Ctrl-C, and its workers with it', async () => {
    const { child, output, ended } = run()
    await expect.poll(() => output.text, { timeout: 60_000 }).toContain('▸ csv_ingest')
    child.kill('SIGINT')
    expect(await ended).toBe(130) // its pipes are closed when no process holds them any more
    expect(output.text).toContain('Stopped. Its workers have ended.')
  }, 90_000)

  test.each([
    [['--help'], 0, 'Usage: npm run example:carbon'],
    [['--row', '5'], 2, "Unknown option '--row'"],
    [['--rows', 'many'], 2, '--rows is many; give a whole number from 1,000 to 1,000,000.'],
    [['--database', 'postgres://127.0.0.1:1/none'], 1, 'error: open: Postgres could not be reached'],
  ])('%j ends with %i and says why', async (args, code, words) => {
    const { output, ended } = run(...args)
    expect(await ended).toBe(code)
    expect(output.text).toContain(words)
  })
})

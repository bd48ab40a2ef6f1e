import type { Job } from '@fencepost/client'
import { expect, test } from 'vitest'
import { describeJobs } from '../jobs/describe.ts'
import { failureOf } from '../failure.ts'
import { Output } from './output.ts'

const steering = '\u001b]0;owned\u0007\u009b2J\u001b[8m'

function bed() {
  const text: string[] = []
  const sink = { write: (some: string) => void text.push(some), isTTY: true }
  return { text, output: new Output({ json: false, stdout: sink, stderr: sink, env: {} }) }
}

/** What is left of a text without the colours that are ours. */
function controlsIn(text: string): string[] {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text.replaceAll(/\u001b\[3\dm/g, '').match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g) ?? []
}

test('an error that quotes what steers a terminal is shown without it', () => {
  const { text, output } = bed()
  output.fail(failureOf(new Error(`The server said ${steering}\nand more`)))
  expect(controlsIn(text.join(''))).toEqual([])
  expect(text.join('')).toContain('\\x1b]0;owned\\x07')
  expect(text.join('')).toContain('\nand more\n')
})

test('a note, and the operation of a job, are shown without it', () => {
  const { text, output } = bed()
  output.note(`Token for ${steering}.`)
  const job = {
    job_id: '0'.repeat(32),
    operation: steering,
    status: 'pending',
    submitted_at: '2026-01-01T00:00:00Z',
    progress: null,
    children: null,
  }
  output.draw(describeJobs([job as Job], output))
  expect(controlsIn(text.join(''))).toEqual([])
})

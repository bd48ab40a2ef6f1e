import { expect, test } from 'vitest'
import type { DemoResult, ExaminedTable, TableHealth, TableProgress } from '@fencepost/maintenance'
import { Output } from '../output/output.ts'
import { comparison } from './comparison.ts'
import { DemoView } from './demo-view.ts'
import { bytesText, secondsText } from './words.ts'

function outputOf(options: { isTTY?: boolean; env?: Record<string, string>; json?: boolean }) {
  const written: string[] = []
  const sink = { write: (text: string) => written.push(text), isTTY: options.isTTY ?? false, columns: 120 }
  const output = new Output({ json: options.json ?? false, stdout: sink, stderr: sink, env: options.env ?? {} })
  return { output, text: () => written.join('') }
}

function examined(files: number, score: number, checksum = 'a1'): ExaminedTable {
  const health = {
    score,
    band: score > 90 ? 'good' : 'bad',
    scanSeconds: files / 100,
    issues: score > 90 ? [] : [{ code: 'small_files', severity: 'critical', message: 'Many files.', evidence: {} }],
    wastedBytes: { total: 1500, expirable: 1500, orphans: 0 },
    facts: {
      dataFiles: { files, bytes: 2000 },
      deleteFiles: { files: 0 },
      snapshots: { count: 3 },
      manifests: { count: 1 },
    },
  } as unknown as TableHealth
  return { table: 'db.clicks', story: 'clicks', health, proof: { rows: 10, checksum } }
}

const running: TableProgress = {
  table: 'db.clicks',
  status: 'running',
  error: undefined,
  actions: [
    { action: 'rewrite_data_files', state: 'done', share: 1, seconds: 2, message: 'Compacted 9 files into 1' },
    { action: 'rewrite_manifests', state: 'running', share: 0.5, seconds: undefined, message: undefined },
    { action: 'expire_snapshots', state: 'waiting', share: 0, seconds: undefined, message: undefined },
  ],
}

test('without a terminal each action is one plain line, said once', () => {
  const { output, text } = outputOf({})
  const view = new DemoView(output)
  view.maintaining([running])
  view.maintaining([running])
  expect(text().match(/Compacted 9 files into 1/g)).toHaveLength(1)
  expect(text()).not.toContain('rewrite_manifests')
  expect(text()).not.toContain('\u001b')
})

test('on a terminal every action of a running table has a bar', () => {
  const { output, text } = outputOf({ isTTY: true })
  new DemoView(output).maintaining([running])
  expect(text()).toMatch(/rewrite_manifests\s+.*█{12}░{12}.* 50 %/)
  expect(text()).toMatch(/expire_snapshots\s+.*░{24}/)
})

test('NO_COLOR leaves the bars and takes the colours', () => {
  const { output, text } = outputOf({ isTTY: true, env: { NO_COLOR: '1' } })
  new DemoView(output).maintaining([running])
  expect(text()).toContain('█')
  expect(text()).not.toContain('\u001b[36m')
})

test('as JSON nothing is shown on the way', () => {
  const { output, text } = outputOf({ json: true })
  const view = new DemoView(output)
  view.making({ table: 'db.clicks', story: 'clicks', tableDone: 1, done: 1 })
  view.examined([examined(9, 10)])
  view.maintaining([running])
  expect(text()).toBe('')
})

test('the comparison shows what has changed, and whether the rows have', () => {
  const { output } = outputOf({})
  const good: DemoResult = {
    tables: [{ before: examined(900, 10), after: examined(1, 100) }],
    isHealthy: true,
    failures: [],
  }
  const shown = comparison(good, 61.4, output)
  expect(shown).toMatch(/db\.clicks\s+900 → 1\s+0\s+2\.0 KB\s+3\s+1\s+9\.00 s → 0\.01 s\s+10 → 100\s+10 same/)
  expect(shown).toContain('Every table is healthy, and every row is as it was. It took 61 s.')
  const bad = { ...good, isHealthy: false, failures: ['db.clicks: no'] }
  const changed = { ...bad, tables: [{ before: examined(900, 10), after: examined(1, 100, 'b2') }] }
  expect(comparison(changed, 1, output)).toMatch(/CHANGED[\s\S]*Not everything went well:\n {2}db\.clicks: no/)
})

test('bytes and seconds are short', () => {
  expect([0, 999, 1000, 1_234_567, 5e12].map(bytesText)).toEqual(['0 B', '999 B', '1.0 KB', '1.2 MB', '5.0 TB'])
  expect([0.0123, 9.99, 61.4].map(secondsText)).toEqual(['0.01 s', '9.99 s', '61 s'])
})

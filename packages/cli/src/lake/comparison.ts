import type { DemoResult, ExaminedTable } from '@fencepost/maintenance'
import type { Output } from '../output/output.ts'
import { table } from '../output/table.ts'
import { bandStyles, bytesText, secondsText } from './words.ts'

/** What has become of each table, and whether its rows are those it had. */
export function comparison({ tables, isHealthy, failures }: DemoResult, seconds: number, output: Output): string {
  const score = ({ health }: ExaminedTable): string => output.style(bandStyles[health.band], String(health.score))
  const rows = tables.map(({ before, after }) => {
    const changed = (of: (one: ExaminedTable) => string): string =>
      of(before) === of(after) ? of(after) : `${of(before)} → ${of(after)}`
    const isSame = before.proof.rows === after.proof.rows && before.proof.checksum === after.proof.checksum
    return [
      `  ${before.table}`,
      changed(({ health }) => String(health.facts.dataFiles.files)),
      changed(({ health }) => String(health.facts.deleteFiles.files)),
      changed(({ health }) => bytesText(health.facts.dataFiles.bytes)),
      changed(({ health }) => String(health.facts.snapshots.count)),
      changed(({ health }) => String(health.facts.manifests.count)),
      changed(({ health }) => secondsText(health.scanSeconds)),
      changed(score),
      isSame ? output.style('green', `${after.proof.rows} same`) : output.style('red', 'CHANGED'),
    ]
  })
  const head = ['  TABLE', 'FILES', 'DELETES', 'BYTES', 'SNAPSHOTS', 'MANIFESTS', 'SCAN', 'SCORE', 'ROWS']
  const verdict = isHealthy
    ? output.style('green', 'Every table is healthy, and every row is as it was.')
    : [output.style('red', 'Not everything went well:'), ...failures.map((failure) => `  ${failure}`)].join('\n')
  return [
    '',
    output.style('bold', 'Before → after'),
    table(head, rows),
    '',
    `${verdict} It took ${secondsText(seconds)}.`,
    'SCAN is what one full read of the table costs on an object store; ROWS are compared by a checksum of all values.',
  ].join('\n')
}

// @ts-check
// How planning a rewrite and expiring snapshots grow with the files of a table: 10 times the files may cost 11 times the
// time, and 1 million must not need more than 1 GB. The files are not there: only metadata is read and written.
//   npm run bench:iceberg-growth -- [--files 1000000] [--folder /a/disk]
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { emptyTable, metadataTable, openCatalog } from './tables.mjs'

const { values } = parseArgs({
  options: { files: { type: 'string', default: '1000000' }, folder: { type: 'string', default: tmpdir() } },
})
const here = fileURLToPath(new URL('.', import.meta.url))
const folder = mkdtempSync(join(values.folder, 'bench-growth-'))
const most = Number(values.files)
const commits = 20
let hasMissed = false
try {
  const warehouse = join(folder, 'w')
  await openCatalog(warehouse).createNamespace(['db'])
  for (const [name, files] of /** @type {const} */ ([
    ['small', most / 10],
    ['large', most],
  ])) {
    await metadataTable(warehouse, name, { commits, filesPerCommit: Math.ceil(files / commits) })
  }
  for (const action of ['plan_rewrite', 'expire_snapshots']) {
    // Before an expiry all files are removed, so that all of them go.
    if (action === 'expire_snapshots') for (const name of ['small', 'large']) await emptyTable(warehouse, name)
    const [small, large] = ['small', 'large'].map((name) => run([warehouse, name, action]))
    const times = large.seconds / small.seconds
    check(
      `${action}: ${most} files ${large.seconds.toFixed(2)} s, ${times.toFixed(1)} times a tenth of them`,
      times <= 11,
    )
    check(
      `${action}: ${large.megabytes.toFixed(0)} MB, a tenth of them ${small.megabytes.toFixed(0)} MB`,
      large.megabytes <= 1024,
    )
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
if (hasMissed) process.exitCode = 1

/**
 * @param {string[]} args
 * @returns {{ seconds: number, megabytes: number }}
 */
function run(args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(here, 'ours.mjs'), ...args], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${args.join(' ')} failed: ${stderr}`)
  return JSON.parse(stdout)
}

/**
 * @param {string} what
 * @param {boolean} isMet
 */
function check(what, isMet) {
  hasMissed ||= !isMet
  console.log(`${what}: ${isMet ? 'met' : 'MISSED'}`)
}

// @ts-check
// Runs one action on a table of a warehouse once, and prints what it took: node ours.mjs <warehouse> <table> <action> [proof]
import {
  executeRewriteDataFiles,
  executeRewriteManifests,
  expireSnapshots,
  planRewriteDataFiles,
  planRewriteManifests,
  removeOrphanFiles,
} from '@fencepost/iceberg'
import { openCatalog } from './tables.mjs'

const [, , warehouse = '', name = '', action = '', proof = 'checksum'] = process.argv
const start = performance.now()
const catalog = openCatalog(warehouse)
const table = await catalog.loadTable({ namespace: ['db'], name })
const run = { catalog }
/** @type {Record<string, () => Promise<number>>} */
const actions = {
  rewrite_data_files: async () => {
    const plan = await planRewriteDataFiles(table, { options: { 'rewrite-all': true, proof } })
    return (await executeRewriteDataFiles(table, plan, run)).rewrittenDataFilesCount
  },
  rewrite_manifests: async () =>
    (await executeRewriteManifests(table, await planRewriteManifests(table), run)).rewrittenManifestsCount,
  expire_snapshots: async () =>
    (await expireSnapshots(table, { olderThan: new Date('2100-01-01'), retainLast: 1 }, run)).expiredSnapshotIds.length,
  remove_orphan_files: async () => (await removeOrphanFiles(table, {}, run)).removedFiles,
  plan_rewrite: async () => (await planRewriteDataFiles(table)).files,
}
const done = await actions[action]?.()
const seconds = (performance.now() - start) / 1000
console.log(JSON.stringify({ seconds, megabytes: process.resourceUsage().maxRSS / 1024, done }))

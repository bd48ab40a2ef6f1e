import {
  executeRewriteDataFiles,
  executeRewriteManifests,
  executeRewritePositionDeletes,
  expireSnapshots,
  planRewriteDataFiles,
  planRewriteManifests,
  planRewritePositionDeletes,
  removeOrphanFiles,
  type Catalog,
  type LoadedTable,
} from '../../src/index.ts'
import type { Lossless, Row } from './engines.ts'

/** An action of ours beside the procedure of Spark that it follows. */
interface TwinAction {
  /** Tables that it has something to do in, or that are hard in another way. */
  readonly goldens: readonly string[]
  readonly call: (table: string) => string
  readonly run: (table: LoadedTable, catalog: Catalog) => Promise<Row[]>
  /** What of the output must be the same. */
  readonly compared: (output: readonly Row[]) => unknown
}

export type ActionName =
  | 'rewrite_data_files'
  | 'rewrite_position_delete_files'
  | 'rewrite_manifests'
  | 'expire_snapshots'
  | 'remove_orphan_files'

const rewriteOptions = { 'rewrite-all': true }
const sparkOptions = `options => map('rewrite-all', 'true')`

/** A result of ours, with the columns that the procedure has. */
function outputOf(result: object, names: readonly string[]): Row[] {
  const values = new Map(Object.entries(result))
  return [
    Object.fromEntries(
      names.map((name) => [
        name,
        String(values.get(name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()))),
      ]),
    ),
  ]
}

/** A number or a text as text: Spark's long numbers come as text. */
function textOf(value: Lossless | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The named columns, as texts. */
function only(names: readonly string[]): TwinAction['compared'] {
  return (output) => output.map((row) => Object.fromEntries(names.map((name) => [name, textOf(row[name])])))
}

const dataColumns = ['rewritten_data_files_count', 'added_data_files_count', 'failed_data_files_count']
const deleteColumns = ['rewritten_delete_files_count', 'added_delete_files_count', 'rewritten_bytes_count']
const manifestColumns = ['rewritten_manifests_count', 'added_manifests_count']
const expiryColumns = [
  'deleted_data_files_count',
  'deleted_position_delete_files_count',
  'deleted_equality_delete_files_count',
  'deleted_manifest_files_count',
  'deleted_manifest_lists_count',
  'deleted_statistics_files_count',
]

export const actions: Readonly<Record<ActionName, TwinAction>> = {
  rewrite_data_files: {
    goldens: [
      'position-deletes-by-file',
      'position-deletes-by-partition',
      'deletion-vectors',
      'equality-deletes-partitioned',
      'spec-evolution',
      'schema-evolution',
      'row-lineage',
    ],
    call: (table) => `call twins.system.rewrite_data_files(table => '${table}', ${sparkOptions})`,
    run: async (table, catalog) => {
      const plan = await planRewriteDataFiles(table, { options: rewriteOptions })
      return outputOf(await executeRewriteDataFiles(table, plan, { catalog }), dataColumns)
    },
    compared: only(dataColumns),
  },
  rewrite_position_delete_files: {
    goldens: ['position-deletes-by-file', 'position-deletes-by-partition', 'upgraded-to-deletion-vectors'],
    call: (table) => `call twins.system.rewrite_position_delete_files(table => '${table}', ${sparkOptions})`,
    run: async (table, catalog) => {
      const plan = await planRewritePositionDeletes(table, { options: rewriteOptions })
      return outputOf(await executeRewritePositionDeletes(table, plan, { catalog }), deleteColumns)
    },
    compared: only(deleteColumns),
  },
  rewrite_manifests: {
    goldens: ['identity', 'overwrites', 'deletion-vectors', 'v1-types'],
    call: (table) => `call twins.system.rewrite_manifests(table => '${table}')`,
    run: async (table, catalog) => {
      const plan = await planRewriteManifests(table)
      return outputOf(await executeRewriteManifests(table, plan, { catalog }), manifestColumns)
    },
    compared: only(manifestColumns),
  },
  expire_snapshots: {
    goldens: ['refs', 'overwrites', 'position-deletes-by-file', 'deletion-vectors', 'v1-upgraded'],
    call: (table) =>
      `call twins.system.expire_snapshots(table => '${table}', older_than => timestamp '2100-01-01 00:00:00', retain_last => 1)`,
    run: async (table, catalog) => {
      const options = { olderThan: new Date('2100-01-01'), retainLast: 1 }
      return outputOf(await expireSnapshots(table, options, { catalog }), expiryColumns)
    },
    compared: only(expiryColumns),
  },
  remove_orphan_files: {
    goldens: ['identity', 'deletion-vectors'],
    call: (table) => `call twins.system.remove_orphan_files(table => '${table}')`,
    run: async (table, catalog) => {
      const { orphanFileLocations } = await removeOrphanFiles(table, {}, { catalog, confirmShare: true })
      return orphanFileLocations.map((path) => ({ orphan_file_location: path }))
    },
    // Spark writes `file:` before what it finds on the local disk.
    compared: (output) =>
      output.map((row) => textOf(row['orphan_file_location']).replace(/^file:(\/\/)?/, '')).toSorted(),
  },
}

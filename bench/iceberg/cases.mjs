// @ts-check
// What is measured, on tables of what size, and how much faster than Spark it is to be.
import { addOrphans, dataTable, deleteOnePercent, metadataTable } from './tables.mjs'

/**
 * @typedef {object} Case
 * @property {string} says
 * @property {string} action as ours and Spark's are called
 * @property {string} options of Spark's procedure
 * @property {number} spark how many times as fast as warm Spark it is to be, at least
 * @property {{ count?: number, checksum?: number, plain?: number, start?: number }} [bars] against DuckDB's COPY at most, by
 *   proof; against a plain copy at most; from the start of the process against Spark from that of its JVM, at least
 * @property {(warehouse: string, name: string) => Promise<void>} make
 */

const rewriteAll = `options => map('rewrite-all', 'true')`

const rewrite = { action: 'rewrite_data_files', options: rewriteAll }
const small = 25_000

/**
 * @param {boolean} isQuick
 * @returns {Record<string, Case>}
 */
export function casesOf(isQuick) {
  /** @param {number} full */
  const of = (full) => (isQuick ? Math.ceil(full / 10) : full)
  return { ...dataCases(of), ...metadataCases(of) }
}

/**
 * @param {(full: number) => number} of
 * @returns {Record<string, Case>}
 */
function dataCases(of) {
  return {
    a: {
      ...rewrite,
      says: `${of(1000)} files of 1 MB, one group`,
      spark: 1.7,
      bars: { count: 1.25, checksum: 1.5, start: 3 },
      make: (warehouse, name) => dataTable(warehouse, name, { files: of(1000), rows: small }),
    },
    'a-partitions': {
      ...rewrite,
      says: `${of(1000)} files of 1 MB, 10 partitions`,
      spark: 1.7,
      bars: { count: 1.25, checksum: 1.5 },
      make: (warehouse, name) => dataTable(warehouse, name, { files: of(1000), rows: small, isPartitioned: true }),
    },
    a2: {
      ...rewrite,
      says: `${of(60)} files of one large row group`,
      spark: 10,
      bars: { checksum: 0.25, plain: 3 },
      make: (warehouse, name) => dataTable(warehouse, name, { files: of(60), rows: 650_000 }),
    },
    b: {
      ...rewrite,
      says: `${of(400)} files of 2 MB, 1 % position deletes`,
      spark: 1.7,
      make: (warehouse, name) =>
        dataTable(warehouse, name, { files: of(400), rows: 2 * small }, (table, _, paths) =>
          deleteOnePercent(table, paths, 2 * small),
        ),
    },
    'b-v3': {
      ...rewrite,
      says: `${of(400)} files of 2 MB, 1 % in deletion vectors`,
      spark: 1.7,
      make: (warehouse, name) =>
        dataTable(warehouse, name, { files: of(400), rows: 2 * small, formatVersion: 3 }, (table, _, paths) =>
          deleteOnePercent(table, paths, 2 * small),
        ),
    },
    c: {
      ...rewrite,
      says: `${of(200)} files, ${of(2_000_000)} keys deleted`,
      spark: 2,
      make: (warehouse, name) =>
        dataTable(warehouse, name, { files: of(200), rows: small }, async (table) => {
          const keys = Array.from({ length: of(2_000_000) }, (_, n) => ({ id: BigInt(n * 2) }))
          await table.deleteEqual(['id'], keys)
        }),
    },
  }
}

/**
 * @param {(full: number) => number} of
 * @returns {Record<string, Case>}
 */
function metadataCases(of) {
  return {
    d: {
      says: `${of(2000)} snapshots expired`,
      action: 'expire_snapshots',
      options: `older_than => timestamp '2100-01-01 00:00:00', retain_last => 1`,
      spark: 5,
      make: async (warehouse, name) =>
        void (await metadataTable(warehouse, name, { commits: of(2000), filesPerCommit: 1 })),
    },
    e: {
      says: `${of(1_000_000)} candidates, ${of(10_000)} orphans`,
      action: 'remove_orphan_files',
      options: `older_than => timestamp '2020-01-01 00:00:00'`,
      spark: 4,
      make: async (warehouse, name) => {
        const size = { commits: 10, filesPerCommit: of(99_000), onDisk: true }
        await addOrphans(await metadataTable(warehouse, name, size), of(10_000))
      },
    },
    f: {
      says: `${of(1000)} manifests of ${of(20_000)} files`,
      action: 'rewrite_manifests',
      options: '',
      spark: 6,
      make: async (warehouse, name) =>
        void (await metadataTable(warehouse, name, { commits: of(1000), filesPerCommit: 20 })),
    },
  }
}

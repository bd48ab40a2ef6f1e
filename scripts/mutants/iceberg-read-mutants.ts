import type { Mutant } from './mutant.ts'

const iceberg = 'packages/iceberg'
const deletes = `${iceberg}/test/scan/deletes.test.ts`
const manifests = `${iceberg}/src/manifests/manifest.test.ts`
const evolution = `${iceberg}/test/scan/evolution.test.ts`
const nullable = `${iceberg}/src/manifests/nullable-unions.test.ts`
const partitionTypes = `${iceberg}/src/manifests/partition-type.test.ts`
const deleteIndex = `${iceberg}/src/snapshot/delete-index.test.ts`
const manifestReads = `${iceberg}/src/snapshot/read-manifests.test.ts`
const groups = `${iceberg}/test/scan/group-reader.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'iceberg: position deletes that reach rows written after them',
    file: `${iceberg}/src/snapshot/delete-index.ts`,
    find: 'this.#kept.sequenceNumber(candidate) >= sequenceNumber',
    replace: 'candidate >= 0',
    tests: [deletes],
  },
  {
    name: 'iceberg: position deletes that miss rows of their own commit',
    file: `${iceberg}/src/snapshot/delete-index.ts`,
    find: 'this.#kept.sequenceNumber(candidate) >= sequenceNumber',
    replace: 'this.#kept.sequenceNumber(candidate) > sequenceNumber',
    tests: [deletes],
  },
  {
    name: 'iceberg: equality deletes that reach rows of their own commit',
    file: `${iceberg}/src/snapshot/delete-index.ts`,
    find: 'this.#kept.sequenceNumber(candidate) > sequenceNumber',
    replace: 'this.#kept.sequenceNumber(candidate) >= sequenceNumber',
    tests: [deletes],
  },
  {
    name: 'iceberg: a vector beside which position deletes still count',
    file: `${iceberg}/src/snapshot/delete-index.ts`,
    find: 'return { vector: this.#kept.get(vector), positions: [], equality }',
    replace:
      'return { vector: this.#kept.get(vector), positions: this.#chain(group?.positions, isNotEarlier), equality }',
    tests: [deletes],
  },
  {
    name: 'iceberg: vectors known by their file alone',
    file: `${iceberg}/src/manifests/content-file.ts`,
    find: 'return file.contentOffset === undefined ? file.filePath',
    replace: 'return file.filePath !== undefined ? file.filePath',
    tests: [manifests],
  },
  {
    name: 'iceberg: row ids that are given twice',
    file: `${iceberg}/src/manifests/inheritance.ts`,
    find: 'nextRowId += BigInt(file.recordCount)',
    replace: '',
    tests: [manifests],
  },
  {
    name: 'iceberg: existing files that take the number of the commit',
    file: `${iceberg}/src/manifests/entry-encoder.ts`,
    find: 'writer.optional(entry.sequenceNumber, (v) => writer.bigint(v))',
    replace: 'writer.optional(undefined, (v: bigint) => writer.bigint(v))',
    tests: [manifests],
  },
  {
    name: 'iceberg: an upper bound that is cut and not raised',
    file: `${iceberg}/src/parquet/bounds.ts`,
    find: 'cut === value ? value : textAbove(cut)',
    replace: 'cut',
    tests: [`${iceberg}/src/parquet/bounds.test.ts`],
  },
  {
    name: 'iceberg: times marked as UTC that are given as they are',
    file: `${iceberg}/src/scan/projection.ts`,
    find: "['time_utc time', cast('time')]",
    replace: "['time_utc time', (sql) => sql]",
    tests: [evolution],
  },
  {
    name: 'iceberg: a data file that may not be declared nullable',
    file: `${iceberg}/src/manifests/entry-decoder.ts`,
    find: "['data_file', dataFile]",
    replace: "['data_file', compileSteps]",
    tests: [nullable],
  },
  {
    name: 'iceberg: nullable pairs of a map that are taken for plain ones',
    file: `${iceberg}/src/avro/lazy-map.ts`,
    find: "if (items.kind === 'union') {",
    replace: 'if (items === undefined) {',
    tests: [nullable],
  },
  {
    name: 'iceberg: partition types that are found anew for every manifest',
    file: `${iceberg}/src/manifests/partition-type.ts`,
    find: 'if (found !== undefined) return found\n  const newestFirst',
    replace: 'const newestFirst',
    tests: [partitionTypes],
  },
  {
    name: 'iceberg: every schema indexed for every spec',
    file: `${iceberg}/src/manifests/partition-type.ts`,
    find: 'if (sources.size === wanted.size) break',
    replace: '',
    tests: [partitionTypes],
  },
  {
    name: 'iceberg: paths of one hash taken for one path',
    file: `${iceberg}/src/snapshot/path-index.ts`,
    find: 'slots[at] === hash && this.#pathOf(value - 1) === path',
    replace: '((slots[at] ?? 0) & 0xfff) === (hash & 0xfff)',
    tests: [deleteIndex],
  },
  {
    name: 'iceberg: a manifest decoded as a whole',
    file: `${iceberg}/src/manifests/read-manifest.ts`,
    find: 'const batchEntries = 1024',
    replace: 'const batchEntries = Number.POSITIVE_INFINITY',
    tests: [manifestReads],
  },
  {
    name: 'iceberg: equality deletes of a group that reach its newer files',
    file: `${iceberg}/src/scan/delete-tables.ts`,
    find: `if (bySequence) conditions.push('d."deleted.seq" < e.seq')`,
    replace: '',
    tests: [groups],
  },
  {
    name: 'iceberg: deletes loaded while the data files hold the staging folder',
    file: `${iceberg}/src/scan/table-reader.ts`,
    find: 'const loaded = await this.#deletes.load(files)',
    replace: `const first = await this.#openAll(files.map(({ file }) => file))
    const loaded = await this.#deletes.load(files)
    await first.staged.release()`,
    tests: [groups],
    by: 'are not held there together',
  },
  {
    name: 'iceberg: a scan that stopped early still prepares files',
    file: `${iceberg}/src/scan/rows.ts`,
    find: 'if (!isRead) reader.stopPreparing()',
    replace: '',
    tests: [`${iceberg}/test/scan/read-ahead.test.ts`],
    by: 'stops early waits for nothing',
  },
  {
    name: 'iceberg: files are prepared beyond one whose deletes are not loaded',
    file: `${iceberg}/src/scan/rows.ts`,
    find: 'return positions.length + equality.length > 0',
    replace: 'return positions.length + equality.length < 0',
    tests: [`${iceberg}/test/scan/read-ahead.test.ts`],
    by: 'holds one file at a time',
  },
  {
    name: 'iceberg: positions of one file of a group deleted in all of them',
    file: `${iceberg}/src/scan/delete-tables.ts`,
    find: 'd."deleted.file" = e.file and d."deleted.pos" = e.pos',
    replace: 'd."deleted.pos" = e.pos',
    tests: [groups],
  },
  {
    name: 'iceberg: row ids of a group that begin with its first file',
    file: `${iceberg}/src/scan/file-group.ts`,
    find: 'else appender.appendBigInt(file.firstRowId)',
    replace: 'else appender.appendBigInt(files[0]?.file.firstRowId ?? 0n)',
    tests: [groups],
  },
  {
    name: 'iceberg: files of two partitions in one group of equality deletes',
    file: `${iceberg}/src/scan/file-group.ts`,
    find: 'const ofPartition = scanned.deletes.equality.length > 0 ||',
    replace: 'const ofPartition =',
    tests: [groups],
  },
]

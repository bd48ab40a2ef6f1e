import type { Mutant } from './mutant.ts'

const iceberg = 'packages/iceberg'
const commits = `${iceberg}/test/commit/commit.test.ts`
const snapshots = `${iceberg}/test/write/snapshots.test.ts`
const deletes = `${iceberg}/test/scan/deletes.test.ts`
const manifests = `${iceberg}/src/manifests/manifest.test.ts`
const evolution = `${iceberg}/test/scan/evolution.test.ts`
const nullable = `${iceberg}/src/manifests/nullable-unions.test.ts`
const partitionTypes = `${iceberg}/src/manifests/partition-type.test.ts`
const manySnapshots = `${iceberg}/src/metadata/many-snapshots.test.ts`
const deleteIndex = `${iceberg}/src/scan/delete-index.test.ts`
const manifestReads = `${iceberg}/src/scan/read-manifests.test.ts`
const groups = `${iceberg}/test/scan/group-reader.test.ts`
const catalog = (name: string) => `${iceberg}/test/catalogs/${name}-catalog.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'iceberg: position deletes that reach rows written after them',
    file: `${iceberg}/src/scan/delete-index.ts`,
    find: 'this.#kept.sequenceNumber(candidate) >= sequenceNumber',
    replace: 'candidate >= 0',
    tests: [deletes],
  },
  {
    name: 'iceberg: position deletes that miss rows of their own commit',
    file: `${iceberg}/src/scan/delete-index.ts`,
    find: 'this.#kept.sequenceNumber(candidate) >= sequenceNumber',
    replace: 'this.#kept.sequenceNumber(candidate) > sequenceNumber',
    tests: [deletes],
  },
  {
    name: 'iceberg: equality deletes that reach rows of their own commit',
    file: `${iceberg}/src/scan/delete-index.ts`,
    find: 'this.#kept.sequenceNumber(candidate) > sequenceNumber',
    replace: 'this.#kept.sequenceNumber(candidate) >= sequenceNumber',
    tests: [deletes],
  },
  {
    name: 'iceberg: a vector beside which position deletes still count',
    file: `${iceberg}/src/scan/delete-index.ts`,
    find: 'return { vector: this.#kept.get(vector), positions: [], equality }',
    replace:
      'return { vector: this.#kept.get(vector), positions: this.#chain(group?.positions, isNotEarlier), equality }',
    tests: [deletes],
  },
  {
    name: 'iceberg: a vector that forgets what the one before it deleted',
    file: `${iceberg}/src/write/position-deletes.ts`,
    find: 'target.positions.addAll(await readVector(table, file))',
    replace: '',
    tests: [snapshots],
  },
  {
    name: 'iceberg: two vectors of one data file',
    file: `${iceberg}/src/write/position-deletes.ts`,
    find: 'replaced.add(fileKey(file))\n    target.positions',
    replace: 'target.positions',
    tests: [snapshots],
  },
  {
    name: 'iceberg: vectors known by their file alone',
    file: `${iceberg}/src/manifests/content-file.ts`,
    find: 'return file.contentOffset === undefined ? file.filePath',
    replace: 'return file.filePath !== undefined ? file.filePath',
    tests: [manifests],
  },
  {
    name: 'iceberg: an unknown commit that is taken for a failed one',
    file: `${iceberg}/src/commit/commit.ts`,
    find: "if (result.outcome === 'unknown') return this.#resolve(table, built, request, result)",
    replace: "if (result.outcome === 'unknown') return { failed: true, why: 'conflict', error: result.error }",
    tests: [commits],
  },
  {
    name: 'iceberg: an unknown commit whose files are removed',
    file: `${iceberg}/src/commit/commit.ts`,
    find: 'for (const file of built.files) this.#keptFiles.add(file)\n    let last',
    replace: 'for (const file of built.files) this.#failedFiles.add(file)\n    await this.removeFailed()\n    let last',
    tests: [commits],
  },
  {
    name: 'iceberg: an unknown commit that is looked for at the head alone',
    file: `${iceberg}/src/commit/applied.ts`,
    find: 'metadata.snapshots.some((s) => s.snapshotId === snapshotId || s.parentSnapshotId === snapshotId) ||\n    metadata.snapshotLog.some((entry) => entry.snapshotId === snapshotId) ||',
    replace: '',
    tests: [commits],
  },
  {
    name: 'iceberg: a try that is built on what the first one loaded',
    file: `${iceberg}/src/commit/commit.ts`,
    find: 'const first = this.#attempts === 1 ? this.#loaded : undefined',
    replace: 'const first = this.#loaded',
    tests: [commits],
  },
  {
    name: 'iceberg: an applied commit whose files are removed with those of lost tries',
    file: `${iceberg}/src/commit/commit.ts`,
    find: '[...this.#failedFiles].filter((file) => !this.#keptFiles.has(file))',
    replace: '[...this.#failedFiles]',
    tests: [commits],
  },
  {
    name: 'iceberg: rows that go into another table of the same name',
    file: `${iceberg}/src/commit/commit.ts`,
    find: 'this.#assertSameTable(table)',
    replace: '',
    tests: [commits],
  },
  {
    name: 'iceberg: a guard that is not asked by a file system catalog',
    file: `${iceberg}/src/catalogs/hadoop-catalog.ts`,
    find: 'await askGuard(identifier, request.guard)',
    replace: 'undefined',
    tests: [catalog('hadoop')],
  },
  {
    name: 'iceberg: a guard that is not asked by a JDBC catalog',
    file: `${iceberg}/src/catalogs/jdbc-commit.ts`,
    find: 'await askGuard(swap.identifier, guard, client)',
    replace: 'undefined',
    tests: [catalog('jdbc')],
  },
  {
    name: 'iceberg: a version that is overwritten',
    file: `${iceberg}/src/catalogs/hadoop-catalog.ts`,
    find: 'await this.#storage.write(location, content, { exclusive: true })',
    replace: 'await this.#storage.write(location, content)',
    tests: [catalog('hadoop')],
  },
  {
    name: 'iceberg: a swap that does not compare',
    file: `${iceberg}/src/catalogs/jdbc-commit.ts`,
    find: 'and metadata_location = $2 ${onlyTables}',
    replace: '${onlyTables}',
    tests: [catalog('jdbc')],
  },
  {
    name: 'iceberg: requirements that nobody checks',
    file: `${iceberg}/src/catalogs/next-metadata.ts`,
    find: 'checkRequirements(metadata, request.requirements)',
    replace: '',
    tests: [catalog('hadoop')],
  },
  {
    name: 'iceberg: row ids that are given twice',
    file: `${iceberg}/src/manifests/inheritance.ts`,
    find: 'nextRowId += BigInt(file.recordCount)',
    replace: '',
    tests: [manifests],
  },
  {
    name: 'iceberg: row ids of a snapshot that are given again by the next',
    file: `${iceberg}/src/metadata/apply-snapshot-updates.ts`,
    find: 'draft.next.nextRowId = firstRowId + addedRows',
    replace: 'draft.next.nextRowId = firstRowId',
    tests: [`${iceberg}/src/metadata/apply-updates.test.ts`],
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
    name: 'iceberg: ids that lose their last digits',
    file: `${iceberg}/src/json/json.ts`,
    find: 'Number.isSafeInteger(number) && !Object.is(number, -0) ? number',
    replace: '!Object.is(number, -0) ? number',
    tests: [`${iceberg}/src/json/json.test.ts`],
  },
  {
    name: 'iceberg: files that stay when a change cannot be committed',
    file: `${iceberg}/src/write/build-snapshot.ts`,
    find: 'files: [...new Set([...change.added.map((file) => file.filePath), ...made])],',
    replace: 'files: [],',
    tests: [snapshots],
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
    name: 'iceberg: every ancestor looked for among all snapshots',
    file: `${iceberg}/src/metadata/ancestry.ts`,
    find: 'at = found ?? 0',
    replace: '',
    tests: [manySnapshots],
  },
  {
    name: 'iceberg: a walk over all snapshots for each that is removed',
    file: `${iceberg}/src/metadata/apply-updates.ts`,
    find: 'of joinedRemovals(updates)) applyUpdate',
    replace: 'of updates) applyUpdate',
    tests: [manySnapshots],
  },
  {
    name: 'iceberg: removals of snapshots that are moved to the first of them',
    file: `${iceberg}/src/metadata/apply-updates.ts`,
    find: 'ids = undefined\n      joined.push(update)',
    replace: 'joined.push(update)',
    tests: [manySnapshots],
  },
  {
    name: 'iceberg: a whole path kept for every delete',
    file: `${iceberg}/src/scan/kept-deletes.ts`,
    find: 'if (this.#folders.length > maxFolders) return 0',
    replace: 'if (maxFolders > 0) return 0',
    tests: [deleteIndex],
  },
  {
    name: 'iceberg: paths of one hash taken for one path',
    file: `${iceberg}/src/scan/path-index.ts`,
    find: 'slots[at] === hash && this.#pathOf(value - 1) === path',
    replace: '((slots[at] ?? 0) & 0xfff) === (hash & 0xfff)',
    tests: [deleteIndex],
  },
  {
    name: 'iceberg: manifests fetched ahead however large they are',
    file: `${iceberg}/src/scan/ordered.ts`,
    find: 'while (waiting.length > 0 && total + weight > weights.max)',
    replace: 'while (waiting.length > limit)',
    tests: [manifestReads],
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

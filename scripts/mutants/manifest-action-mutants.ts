import type { Mutant } from './mutant.ts'

const iceberg = 'packages/iceberg'
const manifestRewrites = `${iceberg}/test/actions/rewrite-manifests.test.ts`
const deleteRewrites = `${iceberg}/test/actions/rewrite-position-deletes.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'iceberg: rewritten manifests whose entries lose their sequence number',
    file: `${iceberg}/src/actions/rewrite-manifests/clustered-manifests.ts`,
    find: "({ ...entry, status: 'existing' })",
    replace: "({ ...entry, sequenceNumber: 0n, status: 'existing' })",
    tests: [manifestRewrites],
    by: 'with every file as it was',
  },
  {
    name: 'iceberg: rewritten manifests that bring back files of manifests that are gone',
    file: `${iceberg}/src/write/build-snapshot.ts`,
    find: 'if (gone.length > 0) {',
    replace: 'if (gone.length < 0) {',
    tests: [manifestRewrites],
    by: 'not brought back',
  },
  {
    name: 'iceberg: deletes that are dropped though their file is live under another scheme',
    file: `${iceberg}/src/actions/rewrite-position-delete-files/rewrite-groups.ts`,
    find: "problem === '' ? spellingProblem(read, data) : problem",
    replace: "problem === '' ? undefined : problem",
    tests: [deleteRewrites],
    by: 'live but for its scheme',
  },
  {
    name: 'iceberg: rewritten deletes that give a data file a second vector',
    file: `${iceberg}/src/actions/rewrite-position-delete-files/commit.ts`,
    find: 'return vector === undefined || keys.has(vector)',
    replace: 'return true',
    tests: [deleteRewrites],
    by: 'v3 table rows that are deleted meanwhile stay deleted',
  },
  {
    name: 'iceberg: rewritten deletes that are committed whatever happened since',
    file: `${iceberg}/src/actions/rewrite-position-delete-files/commit.ts`,
    find: 'if (head?.snapshotId === start.snapshotId && metadata',
    replace: 'if (metadata',
    tests: [deleteRewrites],
    by: 'another line of history',
  },
  {
    name: 'iceberg: rewritten deletes that lose the vector that was there',
    file: `${iceberg}/src/actions/rewrite-position-delete-files/rewrite-groups.ts`,
    find: 'read.set(entry, new Map([[only, await readVector(context.table, entry.file)]]))',
    replace: 'read.set(entry, new Map())',
    tests: [deleteRewrites],
    by: 'with those that are there',
  },
  {
    name: 'iceberg: rewritten deletes that reach a later file of the same path',
    file: `${iceberg}/src/actions/rewrite-position-delete-files/rewrite-groups.ts`,
    find: ' || entry.sequenceNumber > deletes.sequenceNumber',
    replace: '',
    tests: [deleteRewrites],
    by: 'of the same path that came later',
  },
  {
    name: 'iceberg: rewritten deletes with the sequence number of their commit',
    file: `${iceberg}/src/actions/rewrite-position-delete-files/commit.ts`,
    find: 'numbers.get(filePath)',
    replace: 'undefined',
    tests: [deleteRewrites],
    by: 'become one file for each',
  },
]

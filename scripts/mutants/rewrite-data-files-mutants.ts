import type { Mutant } from './mutant.ts'

const iceberg = 'packages/iceberg'
const rewriting = `${iceberg}/src/actions/rewrite-data-files`
const rewriteRaces = `${iceberg}/test/actions/rewrite-races.test.ts`
const rewriteOrder = `${iceberg}/test/actions/rewrite-order.test.ts`
const rewriteProof = `${rewriting}/proof.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'iceberg: rewritten files that take the sequence number of their commit',
    file: `${rewriting}/commit.ts`,
    find: 'this.#dataSequenceNumber = keepsSequenceNumber && hasSequenceNumbers ?',
    replace: 'this.#dataSequenceNumber = !keepsSequenceNumber && hasSequenceNumbers ?',
    tests: [rewriteRaces],
    by: 'deleted by key meanwhile stay deleted',
  },
  {
    name: 'iceberg: a rewrite that looks for no new deletes',
    file: `${rewriting}/new-deletes.ts`,
    find: 'if (sequenceNumber > since) yield file',
    replace: 'if (sequenceNumber < since) yield file',
    tests: [rewriteRaces],
    by: 'deleted by position of a file meanwhile',
  },
  {
    name: 'iceberg: a rewrite that takes position deletes of a partition for those of other files',
    file: `${rewriting}/new-deletes.ts`,
    find: "if (named === 'unreadable' || group.files.some(",
    replace: "if (named === 'unreadable' && group.files.some(",
    tests: [rewriteRaces],
    by: 'deleted by position of a partition meanwhile',
  },
  {
    name: 'iceberg: a proof of files that compares nothing',
    file: `${rewriting}/proof.ts`,
    find: 'if (read.rows === written.rows && read.sum === written.sum && read.xor === written.xor) return',
    replace: 'if (read.rows >= 0n) return',
    tests: [rewriteProof],
  },
  {
    name: 'iceberg: a proof that takes both zeros for one',
    file: `${rewriting}/proof.ts`,
    find: '[value, `signbit(${value})`]',
    replace: '[value]',
    tests: [rewriteProof],
  },
  {
    name: 'iceberg: rows that are moved past an equality delete of their old partition',
    file: `${rewriting}/new-deletes.ts`,
    find: 'if (moves) for (const key of [...from, ...to]) add(this.#moved, key, group)',
    replace: '',
    tests: [rewriteOrder],
    by: 'not moved past a delete',
  },
  {
    name: 'rewrite: more remote files are read at once than there is room for',
    file: 'packages/iceberg/src/actions/rewrite-data-files/slices.ts',
    find: 'if (roomLeft < 0 && taken.length > 0) return { taken, rest: slices.slice(index) }',
    replace: '',
    tests: ['packages/iceberg/test/actions/rewrite-staging.test.ts'],
    by: 'as far as the folder holds them',
  },
  {
    name: 'rewrite: a file that is divided is written whole each time',
    file: 'packages/iceberg/src/actions/rewrite-data-files/row-source.ts',
    find: 'or (_pos >= ${from} and _pos < ${to})',
    replace: 'or true',
    tests: ['packages/iceberg/test/actions/rewrite-staging.test.ts'],
    by: 'a rewrite that divides files',
  },
  {
    name: 'rewrite: files with deletes are copied with the deleted rows',
    file: 'packages/iceberg/src/actions/rewrite-data-files/copyable.ts',
    find: "if (deletes.vector !== undefined || deletes.positions.length + deletes.equality.length > 0) return 'deletes'",
    replace: '',
    tests: ['packages/iceberg/test/actions/rewrite-copy.test.ts'],
    by: 'files with deletes are encoded beside those that are copied',
  },
  {
    name: 'rewrite: copied files lose the ids of their rows',
    file: 'packages/iceberg/src/actions/rewrite-data-files/copy-files.ts',
    find: 'lineage: metadata.formatVersion >= 3',
    replace: 'lineage: false',
    tests: ['packages/iceberg/test/actions/rewrite-copy.test.ts'],
    by: 'their rows, row ids and bounds stay',
  },
  {
    name: 'rewrite: copied files have no bounds',
    file: 'packages/iceberg/src/actions/rewrite-data-files/execute.ts',
    find: "how === 'copy'",
    replace: 'how === undefined',
    tests: ['packages/iceberg/test/actions/rewrite-copy.test.ts'],
    by: 'their rows, row ids and bounds stay',
  },
]

import type { Mutant } from './mutant.ts'

const iceberg = 'packages/iceberg'
const joinedFiles = `${iceberg}/src/parquet/join/join-files.test.ts`

export const mutants: readonly Mutant[] = [
  {
    name: 'iceberg: joined files whose offset indexes still say where pages were',
    file: `${iceberg}/src/parquet/join/offset-index.ts`,
    find: 'i64(pageLocation.offset, offset - pages.offset + to)',
    replace: 'i64(pageLocation.offset, offset)',
    tests: [joinedFiles],
    by: 'every page of every column is where the offset index says',
  },
  {
    name: 'iceberg: joined files whose offset indexes are one byte off',
    file: `${iceberg}/src/parquet/join/offset-index.ts`,
    find: 'offset - pages.offset + to)',
    replace: 'offset - pages.offset + to + 1)',
    tests: [joinedFiles],
    by: 'every page of every column is where the offset index says',
  },
  {
    name: 'iceberg: joined files without the dictionaries of their columns',
    file: `${iceberg}/src/parquet/join/whole-footer.ts`,
    find: 'dictionary > 0 && dictionary < data ? dictionary : data',
    replace: 'data',
    tests: [joinedFiles],
  },
  {
    name: 'iceberg: joined files whose row groups keep their numbers',
    file: `${iceberg}/src/parquet/join/layout.ts`,
    find: 'i16(rowGroup.ordinal, ordinal),',
    replace: '',
    tests: [joinedFiles],
    by: 'every row group is numbered, and says where it begins',
  },
  {
    name: 'iceberg: joined rows whose ids are one too high',
    file: `${iceberg}/src/parquet/join/layout.ts`,
    find: 'firstRowId + BigInt(firstRow)',
    replace: 'firstRowId + BigInt(firstRow) + 1n',
    tests: [joinedFiles],
    by: 'rows keep the ids and sequence numbers that they had by their place',
  },
  {
    name: 'iceberg: joined rows whose ids begin again in every row group',
    file: `${iceberg}/src/parquet/join/layout.ts`,
    find: 'firstRowId + BigInt(firstRow)',
    replace: 'firstRowId',
    tests: [joinedFiles],
    by: 'rows keep the ids and sequence numbers that they had by their place',
  },
  {
    name: 'iceberg: joined files that are not compared with what was read',
    file: `${iceberg}/src/parquet/join/copy-pieces.ts`,
    find: 'if (again[index] === written[index]) continue',
    replace: 'if (index >= 0) continue',
    tests: [joinedFiles],
    by: 'a file that is not read back as it was written is refused and removed',
  },
]

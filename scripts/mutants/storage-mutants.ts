import type { Mutant } from './mutant.ts'

const storage = 'packages/iceberg/src/storage'
const local = 'packages/iceberg/test/storage/local-storage.test.ts'
const durable = 'packages/iceberg/test/write/durable.test.ts'
const transactions = 'packages/iceberg/test/catalogs/jdbc-transaction.test.ts'

export const mutants: readonly Mutant[] = [
  {
    name: 'storage: a draft that gets its name before its content is durable',
    file: `${storage}/local-storage.ts`,
    find: 'await syncFile(from)\n',
    replace: '',
    tests: [local],
    by: 'adopt syncs the file',
  },
  {
    name: 'storage: drafts whose names are not made durable',
    file: `${storage}/local-storage.ts`,
    find: `await attempt(drafts[0]?.location ?? '', () => syncFolders(folders))`,
    replace: '',
    tests: [local],
    by: 'adopt syncs the file',
  },
  {
    name: 'storage: folders that are made and whose names are not made durable',
    file: `${storage}/local-folders.ts`,
    find: 'unsynced.add(at)',
    replace: 'unsynced.delete(at)',
    tests: [local],
    by: 'durability',
  },
  {
    name: 'storage: a source that hangs is waited for after its signal',
    file: `${storage}/within.ts`,
    find: 'const next = await within(signal, () => source.next())',
    replace: 'const next = await source.next()',
    tests: [local],
    by: 'a write whose source hangs',
  },
  {
    name: 'storage: what was not there counts as deleted',
    file: `${storage}/local-storage.ts`,
    find: 'if (isGone) missing.push(location)\n          else',
    replace: 'if (!isGone)',
    tests: [local],
    by: 'is told apart where the store knows',
  },
  {
    name: 'storage: ranges of keys that trust a server to know StartAfter',
    file: `${storage}/s3-listing.ts`,
    find: 'return compareKeys(key, after) > 0 && (',
    replace: 'return (',
    tests: [`${storage}/s3-listing.test.ts`],
    by: 'has every key once',
  },
  {
    name: 'storage: keys compared by their UTF-16 units',
    file: `${storage}/s3-listing.ts`,
    find: 'return Buffer.compare(Buffer.from(a), Buffer.from(b))',
    replace: 'return a < b ? -1 : a > b ? 1 : 0',
    tests: [`${storage}/s3-listing.test.ts`],
    by: 'compares keys by their bytes',
  },
  {
    name: 'write: data files that are committed and never handed to the storage',
    file: 'packages/iceberg/src/write/write-files.ts',
    find: 'await newFiles.keep()\n    return written',
    replace: 'return written',
    tests: [durable],
    by: 'every file is durable before the catalog is asked',
  },
  {
    name: 'write: files that are left over when the storage fails',
    file: `${storage}/new-files.ts`,
    find: 'await this.#storage.delete(this.#handedOver.splice(0)).catch(() => {})',
    replace: '',
    tests: [durable],
    by: 'a storage that fails half way',
  },
  {
    name: 'write: drafts that are left over when the storage fails',
    file: `${storage}/new-files.ts`,
    find: 'for (const draft of drafts) await draft.discard()',
    replace: '',
    tests: [durable],
    by: 'a storage that fails half way',
  },
  {
    name: 'jdbc: a transaction that was rolled back counts as committed',
    file: 'packages/iceberg/src/catalogs/jdbc-commit.ts',
    find: 'if (hasSwapped) return lookAgain(pool, storage, swap, error)',
    replace: `if (hasSwapped) return { outcome: 'swapped' }`,
    tests: [transactions],
    by: 'rolled back after the swap',
  },
  {
    name: 'jdbc: a transaction whose answer was lost counts as rolled back',
    file: 'packages/iceberg/src/catalogs/jdbc-commit.ts',
    find: 'if (hasSwapped) return lookAgain(pool, storage, swap, error)',
    replace: '',
    tests: [transactions],
    by: 'answer',
  },
  {
    name: 'jdbc: a refused commit lets its transaction commit',
    file: 'packages/iceberg/src/catalogs/jdbc-commit.ts',
    find: `if (result.outcome !== 'swapped') throw new NotSwapped(result)`,
    replace: `if (result.outcome !== 'swapped') return`,
    tests: [transactions],
    by: 'a guard that refuses takes the whole transaction back',
  },
]
